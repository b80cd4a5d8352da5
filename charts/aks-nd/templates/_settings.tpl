{{/* Machine types: what one machine of each offers. */}}
{{- define "aks-nd.machines" -}}
Standard_ND96isr_H100_v5:
  gpus: 8
  gpu: h100-80gb
  capacity: {"nvidia.com/gpu": "8", "rdma/ib": "8", "cpu": "90", "memory": "1800Gi"}
  fabric: {"hcas": 8, "env": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "NCCL_IB_PCI_RELAXED_ORDERING": "1", "NCCL_IB_QPS_PER_CONNECTION": "4", "NCCL_IGNORE_CPU_AFFINITY": "1", "NCCL_MIN_NCHANNELS": "32", "NCCL_P2P_NET_CHUNKSIZE": "524288", "NCCL_PXN_DISABLE": "1"}}
Standard_ND96isr_H200_v5:
  gpus: 8
  gpu: h200-141gb
  capacity: {"nvidia.com/gpu": "8", "rdma/ib": "8", "cpu": "90", "memory": "1800Gi"}
  fabric: {"hcas": 8, "env": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "NCCL_IB_PCI_RELAXED_ORDERING": "1", "NCCL_IB_QPS_PER_CONNECTION": "4", "NCCL_IGNORE_CPU_AFFINITY": "1", "NCCL_MIN_NCHANNELS": "32", "NCCL_P2P_NET_CHUNKSIZE": "524288", "NCCL_PXN_DISABLE": "1"}}
Standard_ND128isr_NDR_GB200_v6:
  gpus: 4
  gpu: gb200-192gb
  capacity: {"nvidia.com/gpu": "4", "rdma/ib": "4", "cpu": "120", "memory": "840Gi"}
  fabric: {"hcas": 4, "rack": 18, "computeDomain": true, "env": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}}
Standard_ND128isr_GB300_v6:
  gpus: 4
  gpu: gb300-288gb
  capacity: {"nvidia.com/gpu": "4", "rdma/ib": "4", "cpu": "120", "memory": "840Gi"}
  fabric: {"hcas": 4, "rack": 18, "computeDomain": true, "env": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}}
{{- end }}

{{/* The machine type of the run, as JSON; the root keeps it. */}}
{{- define "aks-nd.machine" -}}
{{- if not .machine }}
{{- $_ := set . "machine" (get (include "aks-nd.machines" . | fromYaml) .Values.machineType | toJson) }}
{{- end }}
{{- .machine }}
{{- end }}

{{/* Devices that fragments ask for on each machine; the user's values of the same name win over them. */}}
{{- define "aks-nd.slot.resourceLimits" -}}
{{- if include "aks-nd.gpu" . }}
{{- /* nvidia-gpu */}}
# Quoted: an unquoted quantity makes each unchanged upgrade a change.
nvidia.com/gpu: {{ include "aks-nd.gpusPerNode" . | quote }}
{{- /* infiniband */}}
{{- if and (include "aks-nd.infiniband" .) .Values.network.resource }}
{{ .Values.network.resource }}: {{ include "aks-nd.infinibandCount" . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/*
What a queue may hand out, as {resource: quantity}: all of setup.quota.nodes machines, or of as many as the run has, with
every other resource that pods of these values request. setup.quota.resources adds to what a machine has, a map by the name
of a machine type only to that type.
*/}}
{{- define "aks-nd.quota" -}}
{{- $nodes := .Values.setup.quota.nodes | default .Values.nodes | int64 }}
{{- $machine := include "aks-nd.machine" . | fromJson }}
{{- $run := merge (dict "Values" (merge (dict "nodes" $nodes) .Values)) . }}
{{- $each := dict }}
{{- $given := .Values.setup.quota.resources | default dict }}
{{- with get $given .Values.machineType }}{{ if kindIs "map" . }}{{ $each = merge $each . }}{{ end }}{{ end }}
{{- range $name, $quantity := $given }}
{{- if not (or (kindIs "map" $quantity) (hasKey $each $name)) }}{{ $_ := set $each $name $quantity }}{{ end }}
{{- end }}
{{- $each = merge $each $machine.capacity }}
{{- $_ := merge $each (include "aks-nd.slot.resourceLimits" $run | fromYaml) }}
{{- range prepend (values .Values.launchers) (get .Values.launchers .Values.launcher) }}
{{- with .resources }}
{{- $_ := merge $each (.limits | default (dict)) (.requests | default (dict)) }}
{{- end }}
{{- end }}
{{- range $name, $quantity := $each }}
{{ $name }}: {{ printf "%d%s" (mul $nodes (regexFind "^[0-9.]+([eE][-+]?[0-9]+)?" (toString $quantity) | float64 | ceil)) (regexFind "[A-Za-z]*$" (toString $quantity)) | quote }}
{{- end }}
{{- end }}

{{/* One value, by (root, "section.name"), as JSON: the launcher's default where it is null; nothing where both are. */}}
{{- define "aks-nd.setting" -}}
{{- $root := index . 0 }}
{{- $path := index . 1 | splitList "." }}
{{- $value := index (get $root.Values (first $path)) (last $path) }}
{{- if kindIs "invalid" $value }}
{{- $value = get (include "aks-nd.launcher" $root | fromJson).defaults (index . 1) }}
{{- end }}
{{- /* --set passes numbers with a point as text */}}
{{- if and (kindIs "string" $value) (regexMatch "^[0-9.]" $value) }}{{ $value = float64 $value }}{{ end }}
{{- if ne (toString $value) "" }}{{ toJson $value }}{{ end }}
{{- end }}

{{/* What is computed again: granularity, method and layers; a word alone is the granularity. */}}
{{- define "aks-nd.recompute" -}}
{{- $given := .Values.recompute }}
{{- merge dict (kindIs "map" $given | ternary $given (dict "granularity" $given)) (dict "method" "uniform" "layers" 1) | toYaml }}
{{- end }}

{{/* Whether the run uses GPUs: "true" or nothing. */}}
{{- define "aks-nd.gpu" -}}
{{- if ne (include "aks-nd.launcher" . | fromJson).task "data" }}true{{ end }}
{{- end }}

{{/* Pods of the run: the machines of a GPU program; the launcher's own number for a program without GPUs, else one. */}}
{{- define "aks-nd.nodes" -}}
{{- $launcher := include "aks-nd.launcher" . | fromJson }}
{{- if eq $launcher.processes "gpu" }}{{ int64 .Values.nodes }}{{ else }}{{ $launcher.nodes | default 1 | int64 }}{{ end }}
{{- end }}

{{/* GPUs of each machine that the run uses: those asked for, or all. */}}
{{- define "aks-nd.gpusPerNode" -}}
{{- $machine := include "aks-nd.machine" . | fromJson }}
{{- .Values.gpusPerNode | default $machine.gpus | int64 }}
{{- end }}

{{/* Processes of the run, one for each GPU. */}}
{{- define "aks-nd.worldSize" -}}
{{- mul (include "aks-nd.gpusPerNode" . | int64) .Values.nodes }}
{{- end }}

{{/* Copies of the model that train side by side; cut to a whole number. */}}
{{- define "aks-nd.dataParallel" -}}
{{- $p := .Values.parallelism }}
{{- div (include "aks-nd.worldSize" . | int64) (mul $p.tensor $p.pipeline $p.context) | max 1 }}
{{- end }}

{{/* Samples of one step; "2/gpu" grows with the run. */}}
{{- define "aks-nd.globalBatch" -}}
{{- $global := .Values.batch.global }}
{{- if kindIs "string" $global }}
{{- mul (trimSuffix "/gpu" $global | int64) (include "aks-nd.worldSize" . | int64) }}
{{- else }}
{{- int64 $global }}
{{- end }}
{{- end }}

{{/* Layers that pipeline stages share: the model's, and embedding and loss where the program counts them too. */}}
{{- define "aks-nd.pipelineLayers" -}}
{{- $layers := int64 .Values.model.layers }}
{{- $config := (get .Values.launchers .Values.launcher).config | default (dict) }}
{{- $nested := kindIs "map" $config.model | ternary $config.model (dict) }}
{{- range list "embedding" "loss" }}
{{- $flag := printf "account-for-%s-in-pipeline-split" . }}
{{- if or (get $config $flag) (get $nested (replace "-" "_" $flag)) }}{{ $layers = add1 $layers }}{{ end }}
{{- end }}
{{- $layers }}
{{- end }}

{{/* Whether the first or the last pipeline stage has layers of its own number: "true" or nothing. */}}
{{- define "aks-nd.unevenStages" -}}
{{- $config := (get .Values.launchers .Values.launcher).config | default (dict) }}
{{- $nested := kindIs "map" $config.model | ternary $config.model (dict) }}
{{- $uneven := false }}
{{- range list "first" "last" }}
{{- if or (get $config (printf "decoder-%s-pipeline-num-layers" .)) (get $nested (printf "num_layers_in_%s_pipeline_stage" .)) }}{{ $uneven = true }}{{ end }}
{{- end }}
{{- if $uneven }}true{{ end }}
{{- end }}

{{/* GPUs that share one expert: those asked for, or as many as share the rest of a layer. */}}
{{- define "aks-nd.expertTensor" -}}
{{- .Values.parallelism.expertTensor | default .Values.parallelism.tensor | int64 }}
{{- end }}
