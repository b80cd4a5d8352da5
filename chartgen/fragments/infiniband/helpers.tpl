{{/* Whether the run uses InfiniBand: "true" or nothing. One machine needs none, so that a site can name its network. */}}
{{- define "<%= chart %>.infiniband" -}}
{{- if and (eq .Values.network.interface "infiniband") (gt (include "<%= chart %>.nodes" . | int64) 1) }}true{{ end }}
{{- end }}
