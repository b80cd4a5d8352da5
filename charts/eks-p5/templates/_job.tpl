{{/* Spec of the Indexed Job: numbered pods, and failed as soon as one of them fails. */}}
{{- define "eks-p5.job" -}}
completionMode: Indexed
completions: {{ include "eks-p5.nodes" . }}
parallelism: {{ include "eks-p5.nodes" . }}
backoffLimit: 0
{{- if include "eks-p5.transportFails" . }}
# NCCL did not get its network: started once more, by whoever, it would not either.
podFailurePolicy:
  rules:
    - action: FailJob
      onExitCodes:
        containerName: pytorch
        operator: In
        values: [78]
{{- end }}
{{- with .Values.run.deadlineSeconds }}
activeDeadlineSeconds: {{ . | int64 }}
{{- end }}
template:
  {{- include "eks-p5.pod" . | nindent 2 }}
{{- end }}
