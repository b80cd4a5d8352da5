{{/* Spec of the Indexed Job: one pod for each machine, numbered, and failed as soon as one of them fails. */}}
{{- define "gke-a3mega.job" -}}
completionMode: Indexed
completions: {{ .Values.nodes | int64 }}
parallelism: {{ .Values.nodes | int64 }}
backoffLimit: 0
{{- with .Values.run.deadlineSeconds }}
activeDeadlineSeconds: {{ . | int64 }}
{{- end }}
template:
  {{- include "gke-a3mega.pod" . | nindent 2 }}
{{- end }}
