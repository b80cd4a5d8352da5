{{/* Address of the first machine by number; the master passes on the first in the order of the network. */}}
{{- define "<%= chart %>.rendezvous" -}}
{{- printf "%s-worker-0.%s" .Run.name .Run.name }}
{{- end }}

{{/*
What the run is. `suspend` is Kueue's to set. The operator warns of a restart policy in a pod's own spec. A worker's
container starts again only where the master does: a run without restarts keeps the pod that failed, and its log.
*/}}
{{- define "<%= chart %>.kindSpec" -}}
slotsPerWorker: {{ .Run.gpusPerNode }}
launcherCreationPolicy: WaitForWorkersReady
runPolicy:
  # After the end the machines are freed; pods that have ended keep their logs.
  cleanPodPolicy: Running
  # The master's script counts the restarts: the operator's would also repeat a run that did not get its network.
  backoffLimit: 0
mpiReplicaSpecs:
  Launcher:
    replicas: 1
    restartPolicy: Never
    template:
      {{- include "<%= chart %>.master" . | replace "\n  restartPolicy: Never" "" | nindent 6 }}
  Worker:
    replicas: {{ .Run.nodes }}
    restartPolicy: {{ .Run.restarts | empty | ternary "Never" "OnFailure" }}
    template:
      {{- include "<%= chart %>.pod" . | replace "\n  restartPolicy: Never" "" | nindent 6 }}
<%= slot("workloadSpec.yaml", 0) %>
{{- end }}

{{/* The master numbers the attempts, and the first process of each compares the checkpoints. */}}
{{- define "<%= chart %>.attempt" -}}{{- end }}
{{- define "<%= chart %>.beforeProcess" }}
{{- if .Run.mustProgress }}
{{ .Files.Get "files/progress.sh" | trim }}
{{- end }}
{{- end }}

{{- define "<%= chart %>.masterEnv" }}
- name: MPI_RESTARTS
  value: {{ .Run.restarts | quote }}
{{- end }}
