{{/* Spec of the Indexed Job: numbered pods, and failed as soon as one of them fails. */}}
{{- define "oke-h100.job" -}}
completionMode: Indexed
completions: {{ include "oke-h100.nodes" . }}
parallelism: {{ include "oke-h100.nodes" . }}
backoffLimit: 0
{{- if include "oke-h100.transportFails" . }}
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
  {{- include "oke-h100.pod" . | nindent 2 }}
{{- end }}
