{{/* Whether the run uses InfiniBand: "true" or nothing. One machine needs none, so that a site can name its network. */}}
{{- define "<%= chart %>.infiniband" -}}
{{- if and (eq .Values.network.interface "infiniband") (gt (include "<%= chart %>.nodes" . | int64) 1) }}true{{ end }}
{{- end }}

{{/* Adapters that NCCL must find on a machine; how many a shared resource stands for, nobody says. */}}
{{- define "<%= chart %>.infinibandDevices" -}}
{{- if not (include "<%= chart %>.infiniband" .) }}0
{{- else if hasPrefix "rdma/" .Values.network.resource }}1
{{- else }}{{ .Values.network.resourceCount | default (include "<%= chart %>.gpusPerNode" .) | int64 }}
{{- end }}
{{- end }}
