{{/* Spec of the Indexed Job: numbered pods, and failed as soon as one of them fails. */}}
{{- define "onprem-p8000.job" -}}
completionMode: Indexed
completions: {{ include "onprem-p8000.nodes" . }}
parallelism: {{ include "onprem-p8000.nodes" . }}
backoffLimit: 0
{{- if include "onprem-p8000.transportFails" . }}
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
  {{- include "onprem-p8000.pod" . | nindent 2 }}
{{- end }}
