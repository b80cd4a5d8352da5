{{/* Machine types: what one machine of each offers. */}}
{{- define "oke-h100.machines" -}}
BM.GPU.H100.8:
  gpus: 8
  gpu: h100-80gb
  capacity: {"nvidia.com/gpu": "8", "nvidia.com/rdma-vf": "16", "cpu": "224", "memory": "2000Gi", "ephemeral-storage": "400Gi"}
  fabric: {"settings": "hopper", "adapters": "=0,1,3,4,5,6,7,8,9,10,12,13,14,15,16,17", "virtualFunctions": 16}
BM.GPU.H200.8:
  gpus: 8
  gpu: h200-141gb
  capacity: {"nvidia.com/gpu": "8", "nvidia.com/rdma-vf": "8", "cpu": "224", "memory": "3000Gi", "ephemeral-storage": "400Gi"}
  fabric: {"settings": "hopper", "adapters": "=0,3,4,5,6,9,10,11", "virtualFunctions": 8}
BM.GPU.B200.8:
  gpus: 8
  gpu: b200-180gb
  capacity: {"nvidia.com/gpu": "8", "nvidia.com/rdma-vf": "8", "cpu": "256", "memory": "4000Gi", "ephemeral-storage": "400Gi"}
  fabric: {"settings": "hopper", "adapters": "=0,3,4,5,6,9,10,11", "virtualFunctions": 8}
BM.GPU.B300.8:
  gpus: 8
  gpu: b300-288gb
  capacity: {"nvidia.com/gpu": "8", "nvidia.com/rdma-vf": "16", "cpu": "256", "memory": "4000Gi", "ephemeral-storage": "400Gi"}
  fabric: {"settings": "hopper", "adapters": "=0,1,7,8,9,10,11,12,13,14,16,17,18,19,20,21", "virtualFunctions": 16}
BM.GPU.A100-v2.8:
  gpus: 8
  gpu: a100-80gb
  capacity: {"nvidia.com/gpu": "8", "nvidia.com/rdma-vf": "16", "cpu": "256", "memory": "2000Gi", "ephemeral-storage": "400Gi"}
  fabric: {"settings": "ampere", "adapters": "=1,2,3,4,5,6,7,8,14,15,16,17,9,10,11,12", "virtualFunctions": 16}
BM.GPU.B4.8:
  gpus: 8
  gpu: a100-40gb
  capacity: {"nvidia.com/gpu": "8", "nvidia.com/rdma-vf": "16", "cpu": "128", "memory": "2000Gi", "ephemeral-storage": "400Gi"}
  fabric: {"settings": "ampere", "adapters": "=1,2,3,4,5,6,7,8,14,15,16,17,9,10,11,12", "virtualFunctions": 16}
BM.GPU4.8:
  gpus: 8
  gpu: a100-40gb
  capacity: {"nvidia.com/gpu": "8", "nvidia.com/rdma-vf": "16", "cpu": "128", "memory": "2000Gi", "ephemeral-storage": "400Gi"}
  fabric: {"settings": "ampere", "adapters": "=0,2,6,8,10,12,14,16,1,3,7,9,11,13,15,17", "virtualFunctions": 16}
BM.GPU.RTXPRO.8:
  gpus: 8
  gpu: rtxpro6000-96gb
  capacity: {"nvidia.com/gpu": "8", "cpu": "288", "memory": "3000Gi", "ephemeral-storage": "400Gi"}
  fabric: {"settings": "rtxpro", "adapters": "=0,1,2,3,6,7,8,9"}
BM.GPU.GB200.4:
  gpus: 4
  gpu: gb200-192gb
  capacity: {"nvidia.com/gpu": "4", "cpu": "144", "memory": "900Gi", "ephemeral-storage": "400Gi"}
  fabric: {"settings": "gb200", "adapters": "0,1,3,4", "computeDomain": true, "bindTo": "none"}
BM.GPU.GB200-v2.4:
  gpus: 4
  gpu: gb200-192gb
  capacity: {"nvidia.com/gpu": "4", "cpu": "144", "memory": "900Gi", "ephemeral-storage": "400Gi"}
  fabric: {"settings": "gb200", "adapters": "0,1,3,4", "computeDomain": true, "bindTo": "none"}
BM.GPU.GB200-v3.4:
  gpus: 4
  gpu: gb200-192gb
  capacity: {"nvidia.com/gpu": "4", "cpu": "144", "memory": "900Gi", "ephemeral-storage": "400Gi"}
  fabric: {"settings": "gb200-v3", "adapters": "=0,1,2,3,5,6,7,8", "computeDomain": true, "bindTo": "none"}
BM.GPU.GB300.4:
  gpus: 4
  gpu: gb300-288gb
  capacity: {"nvidia.com/gpu": "4", "cpu": "144", "memory": "900Gi", "ephemeral-storage": "400Gi"}
  fabric: {"settings": "gb300", "adapters": "=0,1,2,3,5,6,7,8", "computeDomain": true}
{{- end }}

{{/* The machine type of the run, as JSON; the root keeps it. */}}
{{- define "oke-h100.machine" -}}
{{- if not .machine }}
{{- $_ := set . "machine" (get (include "oke-h100.machines" . | fromYaml) .Values.machineType | toJson) }}
{{- end }}
{{- .machine }}
{{- end }}

{{/* Devices that fragments ask for on each machine; the user's values of the same name win over them. */}}
{{- define "oke-h100.slot.resourceLimits" -}}
{{- if include "oke-h100.gpu" . }}
{{- /* nvidia-gpu */}}
# Quoted: an unquoted quantity makes each unchanged upgrade a change.
nvidia.com/gpu: {{ include "oke-h100.gpusPerNode" . | quote }}
{{- /* roce-oke */}}
{{- if eq .Values.network.mode "sriov" }}
nvidia.com/rdma-vf: {{ include "oke-h100.roceFunctions" . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/*
What a queue may hand out, as {resource: quantity}: all of setup.quota.nodes machines, or of as many as the run has, with
every other resource that pods of these values request. setup.quota.resources adds to what a machine has, a map by the name
of a machine type only to that type.
*/}}
{{- define "oke-h100.quota" -}}
{{- $nodes := .Values.setup.quota.nodes | default .Values.nodes | int64 }}
{{- $machine := include "oke-h100.machine" . | fromJson }}
{{- $run := merge (dict "Values" (merge (dict "nodes" $nodes) .Values)) . }}
{{- $each := dict }}
{{- $given := .Values.setup.quota.resources | default dict }}
{{- with get $given .Values.machineType }}{{ if kindIs "map" . }}{{ $each = merge $each . }}{{ end }}{{ end }}
{{- range $name, $quantity := $given }}
{{- if not (or (kindIs "map" $quantity) (hasKey $each $name)) }}{{ $_ := set $each $name $quantity }}{{ end }}
{{- end }}
{{- $each = merge $each $machine.capacity }}
{{- $_ := merge $each (include "oke-h100.slot.resourceLimits" $run | fromYaml) }}
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
{{- define "oke-h100.setting" -}}
{{- $root := index . 0 }}
{{- $path := index . 1 | splitList "." }}
{{- $value := index (get $root.Values (first $path)) (last $path) }}
{{- if kindIs "invalid" $value }}
{{- $value = get (include "oke-h100.launcher" $root | fromJson).defaults (index . 1) }}
{{- end }}
{{- /* --set passes numbers with a point as text */}}
{{- if and (kindIs "string" $value) (regexMatch "^[0-9.]" $value) }}{{ $value = float64 $value }}{{ end }}
{{- if ne (toString $value) "" }}{{ toJson $value }}{{ end }}
{{- end }}

{{/* What is computed again: granularity, method and layers; a word alone is the granularity. */}}
{{- define "oke-h100.recompute" -}}
{{- $given := .Values.recompute }}
{{- merge dict (kindIs "map" $given | ternary $given (dict "granularity" $given)) (dict "method" "uniform" "layers" 1) | toYaml }}
{{- end }}

{{/* Whether the run uses GPUs: "true" or nothing. */}}
{{- define "oke-h100.gpu" -}}
{{- if ne (include "oke-h100.launcher" . | fromJson).task "data" }}true{{ end }}
{{- end }}

{{/* Pods of the run: the machines of a GPU program; the launcher's own number for a program without GPUs, else one. */}}
{{- define "oke-h100.nodes" -}}
{{- $launcher := include "oke-h100.launcher" . | fromJson }}
{{- if eq $launcher.processes "gpu" }}{{ int64 .Values.nodes }}{{ else }}{{ $launcher.nodes | default 1 | int64 }}{{ end }}
{{- end }}

{{/* GPUs of each machine that the run uses: those asked for, or all. */}}
{{- define "oke-h100.gpusPerNode" -}}
{{- $machine := include "oke-h100.machine" . | fromJson }}
{{- .Values.gpusPerNode | default $machine.gpus | int64 }}
{{- end }}

{{/* Processes of the run, one for each GPU. */}}
{{- define "oke-h100.worldSize" -}}
{{- mul (include "oke-h100.gpusPerNode" . | int64) .Values.nodes }}
{{- end }}

{{/* Copies of the model that train side by side; cut to a whole number. */}}
{{- define "oke-h100.dataParallel" -}}
{{- $p := .Values.parallelism }}
{{- div (include "oke-h100.worldSize" . | int64) (mul $p.tensor $p.pipeline $p.context) | max 1 }}
{{- end }}

{{/* Samples of one step; "2/gpu" grows with the run. */}}
{{- define "oke-h100.globalBatch" -}}
{{- $global := .Values.batch.global }}
{{- if kindIs "string" $global }}
{{- mul (trimSuffix "/gpu" $global | int64) (include "oke-h100.worldSize" . | int64) }}
{{- else }}
{{- int64 $global }}
{{- end }}
{{- end }}

{{/* Layers that pipeline stages share: the model's, and embedding and loss where the program counts them too. */}}
{{- define "oke-h100.pipelineLayers" -}}
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
{{- define "oke-h100.unevenStages" -}}
{{- $config := (get .Values.launchers .Values.launcher).config | default (dict) }}
{{- $nested := kindIs "map" $config.model | ternary $config.model (dict) }}
{{- $uneven := false }}
{{- range list "first" "last" }}
{{- if or (get $config (printf "decoder-%s-pipeline-num-layers" .)) (get $nested (printf "num_layers_in_%s_pipeline_stage" .)) }}{{ $uneven = true }}{{ end }}
{{- end }}
{{- if $uneven }}true{{ end }}
{{- end }}

{{/* GPUs that share one expert: those asked for, or as many as share the rest of a layer. */}}
{{- define "oke-h100.expertTensor" -}}
{{- .Values.parallelism.expertTensor | default .Values.parallelism.tensor | int64 }}
{{- end }}
