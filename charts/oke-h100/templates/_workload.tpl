{{/* Address of the first machine in Volcano's order; the master names the one that is first in the network's. */}}
{{- define "oke-h100.rendezvous" -}}
{{- printf "%s-mpiworker-0.%s" (include "oke-h100.run" .) (include "oke-h100.run" .) }}
{{- end }}

{{/*
What the run is. Volcano's webhook fills in what is left out and then refuses every change to it, so that an unchanged
upgrade would fail: each field that has a default is written here.
*/}}
{{- define "oke-h100.kindSpec" -}}
{{- $nodes := include "oke-h100.nodes" . | int64 -}}
schedulerName: volcano
# All machines and the master, or none.
minAvailable: {{ add1 $nodes }}
plugins:
  ssh: []
  # Names resolve before pods are ready.
  svc: [--publish-not-ready-addresses=true]
# A pod that fails or is evicted ends the others, which frees the GPUs. Volcano counts its retries from the first
# start on; only a run that has used them up is Failed.
maxRetry: {{ add1 .Values.run.maxRestarts }}
policies:
  {{- if include "oke-h100.transportFails" . }}
  # NCCL did not get its network: started once more it would not either. The first policy that fits counts.
  - exitCode: 78
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
      {{- include "oke-h100.master" . | nindent 6 }}
  - name: mpiworker
    replicas: {{ $nodes }}
    minAvailable: {{ $nodes }}
    maxRetry: 1
    template:
      {{- include "oke-h100.pod" . | nindent 6 }}
{{- if include "oke-h100.gpu" . }}
{{- /* volcano-queue */}}
queue: {{ .Values.queue.name | default "default" | quote }}
{{- with .Values.queue.priorityClass }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
