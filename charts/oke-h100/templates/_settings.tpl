{{/* Devices that fragments ask for on each machine; the user's values of the same name win over them. */}}
{{- define "oke-h100.slot.resourceLimits" -}}
{{- if .Run.gpu }}
{{- /* nvidia-gpu */}}
# Quoted: an unquoted quantity makes each unchanged upgrade a change.
nvidia.com/gpu: {{ .Run.gpusPerNode | quote }}
{{- /* roce-oke */}}
{{- if eq .Values.network.mode "sriov" }}
nvidia.com/rdma-vf: {{ include "oke-h100.roceFunctions" . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* One value, by (root, "section.name"), as JSON: the launcher's default where it is null; nothing where both are. */}}
{{- define "oke-h100.setting" -}}
{{- $root := index . 0 }}
{{- $path := index . 1 | splitList "." }}
{{- $value := index (get $root.Values (first $path)) (last $path) }}
{{- if kindIs "invalid" $value }}
{{- $value = get $root.Run.launcher.defaults (index . 1) }}
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

{{/* GPUs that share one expert: those asked for, or as many as share the rest of a layer. */}}
{{- define "oke-h100.expertTensor" -}}
{{- .Values.parallelism.expertTensor | default .Values.parallelism.tensor | int64 }}
{{- end }}

{{/*
Release of NVIDIA's NeMo image as a number, such as 2606; launchers.<name>.release where the image is another; 0 = unknown.
*/}}
{{- define "oke-h100.imageRelease" -}}
{{- $tag := regexFind "(^|/)nvidia/nemo:[0-9]{2}[.][0-9]{2}([^0-9]|$)" (.Run.launcher.image | default "") }}
{{- $release := (get .Values.launchers .Values.launcher).release | default (regexFind "[0-9]{2}[.][0-9]{2}" $tag) }}
{{- replace "." "" $release | default "0" }}
{{- end }}
