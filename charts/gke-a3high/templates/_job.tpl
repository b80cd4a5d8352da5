{{/* Spec of the Indexed Job: numbered pods, and failed as soon as one of them fails. */}}
{{- define "gke-a3high.job" -}}
completionMode: Indexed
completions: {{ include "gke-a3high.nodes" . }}
parallelism: {{ include "gke-a3high.nodes" . }}
backoffLimit: 0
{{- with .Values.run.deadlineSeconds }}
activeDeadlineSeconds: {{ . | int64 }}
{{- end }}
template:
  {{- include "gke-a3high.pod" . | nindent 2 }}
{{- end }}
