{{/*
VPC network and subnetwork of each of network.subnetworks, as a list of {name, vpc, subnet}: numbered from 0 behind a
common beginning, or listed one by one.
*/}}
{{- define "<%= chart %>.gkeNetworks" -}}
{{- $names := .Values.network.subnetworks }}
{{- $vpcs := .Values.setup.networks }}
{{- if kindIs "string" $vpcs }}
{{- $vpcs = list }}
{{- range $i, $_ := $names }}{{ $vpcs = append $vpcs (dict "vpc" (printf "%s%d" $.Values.setup.networks $i)) }}{{ end }}
{{- else if ne (len $vpcs) (len $names) }}
{{- fail (printf "\nsetup.networks: has %d networks, network.subnetworks has %d; list one for each" (len $vpcs) (len $names)) }}
{{- end }}
{{- range $i, $name := $names }}
{{- $network := index $vpcs $i }}
- name: {{ $name | quote }}
  vpc: {{ $network.vpc | quote }}
  subnet: {{ $network.subnet | default $network.vpc | quote }}
{{- end }}
{{- end }}
