{{/* Address of the first machine: the operator makes a headless Service for each pod, of the pod's name. */}}
{{- define "eks-p5.rendezvous" -}}
{{- printf "%s-worker-0" (include "eks-p5.run" .) }}
{{- end }}

{{/*
What the run is. `suspend` is Kueue's to set. Without a backoffLimit a failed worker fails the run just the same, and
operators before 1.9.4 keep its log. The operator warns of a restart policy in the pod's own spec.
*/}}
{{- define "eks-p5.kindSpec" -}}
nprocPerNode: {{ include "eks-p5.gpusPerNode" . | quote }}
runPolicy:
  # After a failure the machines that still run are freed; pods that have ended keep their logs.
  cleanPodPolicy: Running
  {{- with .Values.run.deadlineSeconds }}
  activeDeadlineSeconds: {{ . | int64 }}
  {{- end }}
pytorchReplicaSpecs:
  Worker:
    replicas: {{ include "eks-p5.nodes" . }}
    restartPolicy: Never
    template:
      {{- include "eks-p5.pod" . | replace "\n  restartPolicy: Never" "" | nindent 6 }}

{{- end }}

{{/* Name of the run's own etcd, or nothing. */}}
{{- define "eks-p5.etcd" -}}
{{- if and (include "eks-p5.gpu" .) (eq .Values.rendezvous.backend "etcd") }}
{{- printf "%s-etcd" (include "eks-p5.run" .) }}
{{- end }}
{{- end }}

{{/* Labels of its pod: not the release's own, which say that a pod is part of the training. */}}
{{- define "eks-p5.etcdLabels" -}}
app.kubernetes.io/name: etcd
app.kubernetes.io/instance: {{ include "eks-p5.etcd" . }}
{{- end }}
