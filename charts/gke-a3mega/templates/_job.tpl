{{/* Spec of the Indexed Job: numbered pods, and failed as soon as one of them fails. */}}
{{- define "gke-a3mega.job" -}}
completionMode: Indexed
completions: {{ include "gke-a3mega.nodes" . }}
parallelism: {{ include "gke-a3mega.nodes" . }}
backoffLimit: 0
{{- with .Values.run.deadlineSeconds }}
activeDeadlineSeconds: {{ . | int64 }}
{{- end }}
template:
  {{- include "gke-a3mega.pod" . | nindent 2 }}
{{- end }}
