{{/* Spec of the Indexed Job: numbered pods, and failed as soon as one of them fails. */}}
{{- define "gke-a3mega.job" -}}
completionMode: Indexed
completions: {{ include "gke-a3mega.nodes" . }}
parallelism: {{ include "gke-a3mega.nodes" . }}
backoffLimit: 0
{{- if include "gke-a3mega.transportFails" . }}
# NCCL did not get its network: started once more, by whoever, it would not either.
podFailurePolicy:
  rules:
    - action: FailJob
      onExitCodes:
        containerName: workload
        operator: In
        values: [78]
{{- end }}
{{- with .Values.run.deadlineSeconds }}
activeDeadlineSeconds: {{ . | int64 }}
{{- end }}
template:
  {{- include "gke-a3mega.pod" . | nindent 2 }}
{{- end }}
