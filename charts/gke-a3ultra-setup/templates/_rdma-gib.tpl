{{/* Interfaces of a pod as JSON: eth0 for all else, eth1 for the second gVNIC, eth2 and on for RDMA, whether eth1 is there or not. */}}
{{- define "gke-a3ultra-setup.gibInterfaces" -}}
{{- $interfaces := list (dict "interfaceName" "eth0" "network" "default") }}
{{- with .Values.network.gvnic }}{{ $interfaces = append $interfaces (dict "interfaceName" "eth1" "network" .) }}{{ end }}
{{- range $i, $network := .Values.network.subnetworks }}
{{- $interfaces = append $interfaces (dict "interfaceName" (printf "eth%d" (add 2 $i)) "network" $network) }}
{{- end }}
{{- toJson $interfaces }}
{{- end }}

{{/* Networks of the pods, and how Google's Cluster Toolkit names their VPC networks behind the deployment's name. */}}
{{- define "gke-a3ultra-setup.networkNames" -}}
{{- if eq .Values.network.mode "annotation" }}
{{- with .Values.network.gvnic }}
- {name: {{ . | quote }}, mode: NetDevice, vpc: -net-1, subnet: -sub-1}
{{- end }}
{{- range $i, $name := .Values.network.subnetworks }}
- {name: {{ $name | quote }}, mode: RDMA, vpc: -rdma-net, subnet: -rdma-sub-{{ $i }}}
{{- end }}
{{- end }}
{{- end }}

{{/* Whether gIB is in the image, as on A4X Max, instead of in a folder of the machine: "true" or nothing. */}}
{{- define "gke-a3ultra-setup.gibInImage" -}}
{{- with .Run.machine.fabric }}{{ if eq (.gib | default "") "image" }}true{{ end }}{{ end }}
{{- end }}
