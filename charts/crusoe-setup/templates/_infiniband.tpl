{{/* Whether the run uses InfiniBand: "true" or nothing. One machine needs none, so that a site can name its network. */}}
{{- define "crusoe-setup.infiniband" -}}
{{- if and (eq .Values.network.interface "infiniband") (gt .Run.nodes 1) }}true{{ end }}
{{- end }}

{{/* How many of the resource each machine takes. */}}
{{- define "crusoe-setup.infinibandCount" -}}
{{- .Values.network.resourceCount | default .Run.gpusPerNode | int64 }}
{{- end }}
