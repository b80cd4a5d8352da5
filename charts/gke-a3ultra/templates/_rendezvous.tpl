{{/* How torchrun's machines find each other: their numbers are known, and the first one is the meeting point. */}}
{{- define "gke-a3ultra.rendezvousFlags" -}}
--node-rank="$NODE_RANK"
--master-addr="$MASTER_ADDR" --master-port="$port"
{{- end }}
