{{/* Interfaces of a pod as JSON: eth0 for all else, eth1 for the second gVNIC, eth2 and on for RDMA, whether eth1 is there or not. */}}
{{- define "gke-a3ultra.gibInterfaces" -}}
{{- $interfaces := list (dict "interfaceName" "eth0" "network" "default") }}
{{- with .Values.network.gvnic }}{{ $interfaces = append $interfaces (dict "interfaceName" "eth1" "network" .) }}{{ end }}
{{- range $i, $network := .Values.network.subnetworks }}
{{- $interfaces = append $interfaces (dict "interfaceName" (printf "eth%d" (add 2 $i)) "network" $network) }}
{{- end }}
{{- toJson $interfaces }}
{{- end }}

{{/* Whether gIB is in the image, as on A4X Max, instead of in a folder of the machine: "true" or nothing. */}}
{{- define "gke-a3ultra.gibInImage" -}}
{{- with .Run.machine.fabric }}{{ if eq (.gib | default "") "image" }}true{{ end }}{{ end }}
{{- end }}
