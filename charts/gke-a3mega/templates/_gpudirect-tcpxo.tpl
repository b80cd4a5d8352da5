{{/* Interfaces of a pod outside the host network, as JSON: eth0 for all else, eth1 to eth8 for the GPUs. */}}
{{- define "gke-a3mega.tcpxoInterfaces" -}}
{{- $interfaces := list (dict "interfaceName" "eth0" "network" "default") }}
{{- range $i, $network := .Values.network.subnetworks }}
{{- $interfaces = append $interfaces (dict "interfaceName" (printf "eth%d" (add1 $i)) "network" $network) }}
{{- end }}
{{- toJson $interfaces }}
{{- end }}
