{{/* Address of the first machine in Volcano's order; the master uses the first one in the network's order. */}}
{{- define "<%= chart %>.rendezvous" -}}
{{- printf "%s-mpiworker-0.%s" .Run.name .Run.name }}
{{- end }}

{{/* Field of a pod with the number of its attempt (volcano v1.14.1, pkg/controllers/job/job_controller_util.go). */}}
{{- define "<%= chart %>.attempt" -}}
metadata.annotations['volcano.sh/job-retry-count']
{{- end }}

{{/*
What the run is. Volcano's webhook fills in what is left out and then refuses every change to it, so that an unchanged
upgrade would fail: each field that has a default is written here.
*/}}
{{- define "<%= chart %>.kindSpec" -}}
{{- $nodes := .Run.nodes -}}
schedulerName: volcano
# All machines and the master, or none.
minAvailable: {{ add1 $nodes }}
plugins:
  ssh: []
  # Names resolve before pods are ready. Volcano's own NetworkPolicy would also keep Prometheus out.
  svc: [--publish-not-ready-addresses=true, --disable-network-policy=true]
# A pod that fails or is evicted ends the others, which frees the GPUs. Volcano counts its retries from the first
# start on; only a run that has used them up is Failed.
maxRetry: {{ add1 .Run.restarts }}
policies:
  # Started once more it would end in the same way. The first policy that fits counts.
  {{- range include "<%= chart %>.finalExits" . | fromJsonArray }}
  - exitCode: {{ . }}
    action: TerminateJob
  {{- end }}
  - events: [PodFailed, PodEvicted]
    action: RestartJob
tasks:
  - name: mpimaster
    replicas: 1
    minAvailable: 1
    maxRetry: 1
    policies:
      - event: TaskCompleted
        action: CompleteJob
    template:
      {{- include "<%= chart %>.master" . | nindent 6 }}
  - name: mpiworker
    replicas: {{ $nodes }}
    minAvailable: {{ $nodes }}
    maxRetry: 1
    template:
      {{- include "<%= chart %>.pod" . | nindent 6 }}
<%= slot("workloadSpec.yaml", 0) %>
{{- end }}
