{{/* Script of the master. Values reach it as variables only. */}}
{{- define "oke-h100.masterScript" -}}
{{ .Files.Get "files/master.sh" | trim }}
{{- if .Run.transport }}
# Checks whether NCCL uses the network that the chart promises, before the machines spend time on anything else.
"${launch[@]}" /etc/chartgen/transport.sh &
wait "$!"
{{- end }}
{{ .Files.Get "files/mpirun.sh" | trim }}
{{- end }}
