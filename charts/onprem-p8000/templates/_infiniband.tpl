{{/* Whether the run uses InfiniBand: "true" or nothing. One machine needs none, so that a site can name its network. */}}
{{- define "onprem-p8000.infiniband" -}}
{{- if and (eq .Values.network.interface "infiniband") (gt .Run.nodes 1) }}true{{ end }}
{{- end }}

{{/* What the target knows of the machine type's network: hcas = its adapters, names = those that NCCL uses,
topologyFile = NCCL's description of its PCI topology, env = NCCL's settings for it. */}}
{{- define "onprem-p8000.infinibandFabric" -}}
{{- .Run.machine.fabric | default dict | toYaml }}
{{- end }}

{{/* How many of the resource each machine takes. */}}
{{- define "onprem-p8000.infinibandCount" -}}
{{- .Values.network.resourceCount | default .Run.gpusPerNode | int64 }}
{{- end }}

{{/*
Adapters that NCCL must find on a machine. One unit of a shared resource, or none, gives a pod all of them; only a target
knows their number.
*/}}
{{- define "onprem-p8000.infinibandDevices" -}}
{{- $hcas := (include "onprem-p8000.infinibandFabric" . | fromYaml).hcas | default 0 | int64 }}
{{- $count := include "onprem-p8000.infinibandCount" . | int64 }}
{{- if not (include "onprem-p8000.infiniband" .) }}0
{{- else if $hcas }}{{ or (not .Values.network.resource) (eq 1 (int64 .Values.network.resourceCount)) | ternary $hcas (min $hcas $count) }}
{{- else if or (not .Values.network.resource) (hasPrefix "rdma/" .Values.network.resource) }}1
{{- else }}{{ $count }}
{{- end }}
{{- end }}
