{{/* How torchrun's machines find each other: their numbers are known, and the first one is the meeting point. */}}
{{- define "onprem-p8000.rendezvousFlags" -}}
--node-rank="$NODE_RANK"
--master-addr="$MASTER_ADDR" --master-port="$port"
{{- end }}
