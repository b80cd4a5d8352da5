{{/* Whether the run uses InfiniBand: "true" or nothing. One machine needs none, so that a site can name its network. */}}
{{- define "onprem-p8000.infiniband" -}}
{{- if and (eq .Values.network.interface "infiniband") (gt (include "onprem-p8000.nodes" . | int64) 1) }}true{{ end }}
{{- end }}
