{{/* Whether the run uses InfiniBand: "true" or nothing. One machine needs none, so that a site can name its network. */}}
{{- define "crusoe.infiniband" -}}
{{- if and (eq .Values.network.interface "infiniband") (gt .Run.nodes 1) }}true{{ end }}
{{- end }}

{{/* What the target knows of the machine type's network: hcas = its adapters, names = those that NCCL uses,
topologyFile = NCCL's description of its PCI topology, env = NCCL's settings for it. */}}
{{- define "crusoe.infinibandFabric" -}}
{{- .Run.machine.fabric | default dict | toYaml }}
{{- end }}

{{/* How many of the resource each machine takes. */}}
{{- define "crusoe.infinibandCount" -}}
{{- .Values.network.resourceCount | default .Run.gpusPerNode | int64 }}
{{- end }}

{{/*
Adapters that NCCL must find on a machine. One unit of a shared resource, or none, gives a pod all of them; only a target
knows their number.
*/}}
{{- define "crusoe.infinibandDevices" -}}
{{- $hcas := (include "crusoe.infinibandFabric" . | fromYaml).hcas | default 0 | int64 }}
{{- $count := include "crusoe.infinibandCount" . | int64 }}
{{- if not (include "crusoe.infiniband" .) }}0
{{- else if $hcas }}{{ or (not .Values.network.resource) (eq 1 (int64 .Values.network.resourceCount)) | ternary $hcas (min $hcas $count) }}
{{- else if or (not .Values.network.resource) (hasPrefix "rdma/" .Values.network.resource) }}1
{{- else }}{{ $count }}
{{- end }}
{{- end }}
