{{/*
VPC network and subnetwork of each network of the pods (<chart>.networkNames of the fabric fragment), as a list of
{name, mode, vpc, subnet}: those of the vendor's names behind a common beginning, or listed one by one.
*/}}
{{- define "gke-a4-setup.gkeNetworks" -}}
{{- $networks := include "gke-a4-setup.networkNames" . | fromYamlArray }}
{{- $vpcs := .Values.setup.networks }}
{{- if kindIs "string" $vpcs }}
{{- $vpcs = list }}
{{- range $networks }}{{ $vpcs = append $vpcs (dict "vpc" (print $.Values.setup.networks .vpc) "subnet" (print $.Values.setup.networks .subnet)) }}{{ end }}
{{- else if ne (len $vpcs) (len $networks) }}
{{- fail (printf "\nsetup.networks: has %d networks, network.subnetworks has %d; list one for each" (len $vpcs) (len $networks)) }}
{{- end }}
{{- range $i, $network := $networks }}
{{- $vpc := index $vpcs $i }}
- name: {{ $network.name | quote }}
  mode: {{ $network.mode }}
  vpc: {{ $vpc.vpc | quote }}
  subnet: {{ $vpc.subnet | default $vpc.vpc | quote }}
{{- end }}
{{- end }}
