{{/* Address of the first machine: the operator makes a headless Service for each pod, of the pod's name. */}}
{{- define "<%= chart %>.rendezvous" -}}
{{- printf "%s-worker-0" .Run.name }}
{{- end }}

{{/*
What the run is. `suspend` is Kueue's to set. Without a backoffLimit a failed worker fails the run just the same, and
operators before 1.9.4 keep its log. The operator warns of a restart policy in the pod's own spec.
*/}}
{{- define "<%= chart %>.kindSpec" -}}
nprocPerNode: {{ .Run.gpusPerNode | quote }}
runPolicy:
  # After a failure the machines that still run are freed; pods that have ended keep their logs.
  cleanPodPolicy: Running
  {{- with .Values.run.deadlineSeconds }}
  activeDeadlineSeconds: {{ . | int64 }}
  {{- end }}
pytorchReplicaSpecs:
  Worker:
    replicas: {{ .Run.nodes }}
    restartPolicy: Never
    template:
      {{- include "<%= chart %>.pod" . | replace "\n  restartPolicy: Never" "" | nindent 6 }}
<%= slot("workloadSpec.yaml", 0) %>
{{- end }}

{{/* Name of the run's own etcd, or nothing. */}}
{{- define "<%= chart %>.etcd" -}}
{{- if and .Run.gpu (eq .Values.rendezvous.backend "etcd") }}
{{- printf "%s-etcd" .Run.name }}
{{- end }}
{{- end }}

{{/* Labels of its pod: not the release's own, which mark a pod as part of the training. */}}
{{- define "<%= chart %>.etcdLabels" -}}
app.kubernetes.io/name: etcd
app.kubernetes.io/instance: {{ include "<%= chart %>.etcd" . }}
{{- end }}
