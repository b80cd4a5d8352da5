{{/* Machine types: what one machine of each offers. */}}
{{- define "<%= chart %>.machines" -}}
<% for machine in target.machines.values() %>
<%= machine.name | scalar %>:
  gpus: <%= machine.gpus %>
  gpu: <%= machine.gpu | scalar %>
  capacity: <%= machine.capacity | quoted %>
<% if machine.fabric %>
  fabric: <%= machine.fabric | quoted %>
<% endif %>
<% endfor %>
{{- end }}

{{/* The machine type of the run, as JSON; the root keeps it. */}}
{{- define "<%= chart %>.machine" -}}
{{- if not .machine }}
{{- $_ := set . "machine" (get (include "<%= chart %>.machines" . | fromYaml) .Values.machineType | toJson) }}
{{- end }}
{{- .machine }}
{{- end }}

{{/* Devices that fragments ask for on each machine; the user's values of the same name win over them. */}}
{{- define "<%= chart %>.slot.resourceLimits" -}}
<%= slot("resourceLimits.yaml", 0) %>
{{- end }}

{{/*
What a queue may hand out, as {resource: quantity}: all of setup.quota.nodes machines, or of as many as the run has, with
every other resource that pods of these values request. setup.quota.resources adds to what a machine has, a map by the name
of a machine type only to that type.
*/}}
{{- define "<%= chart %>.quota" -}}
{{- $nodes := .Values.setup.quota.nodes | default .Values.nodes | int64 }}
{{- $machine := include "<%= chart %>.machine" . | fromJson }}
{{- $run := merge (dict "Values" (merge (dict "nodes" $nodes) .Values)) . }}
{{- $each := dict }}
{{- $given := .Values.setup.quota.resources | default dict }}
{{- with get $given .Values.machineType }}{{ if kindIs "map" . }}{{ $each = merge $each . }}{{ end }}{{ end }}
{{- range $name, $quantity := $given }}
{{- if not (or (kindIs "map" $quantity) (hasKey $each $name)) }}{{ $_ := set $each $name $quantity }}{{ end }}
{{- end }}
{{- $each = merge $each $machine.capacity }}
{{- $_ := merge $each (include "<%= chart %>.slot.resourceLimits" $run | fromYaml) }}
{{- range prepend (values .Values.launchers) (get .Values.launchers .Values.launcher | default dict) }}
{{- with .resources }}
{{- $_ := merge $each (.limits | default (dict)) (.requests | default (dict)) }}
{{- end }}
{{- end }}
{{- range $name, $quantity := $each }}
{{ $name }}: {{ printf "%d%s" (mul $nodes (regexFind "^[0-9.]+([eE][-+]?[0-9]+)?" (toString $quantity) | float64 | ceil)) (regexFind "[A-Za-z]*$" (toString $quantity)) | quote }}
{{- end }}
{{- end }}

{{/* One value, by (root, "section.name"), as JSON: the launcher's default where it is null; nothing where both are. */}}
{{- define "<%= chart %>.setting" -}}
{{- $root := index . 0 }}
{{- $path := index . 1 | splitList "." }}
{{- $value := index (get $root.Values (first $path)) (last $path) }}
{{- if kindIs "invalid" $value }}
{{- $value = get (include "<%= chart %>.launcher" $root | fromJson).defaults (index . 1) }}
{{- end }}
{{- /* --set passes numbers with a point as text */}}
{{- if and (kindIs "string" $value) (regexMatch "^[0-9.]" $value) }}{{ $value = float64 $value }}{{ end }}
{{- if ne (toString $value) "" }}{{ toJson $value }}{{ end }}
{{- end }}

{{/* What is computed again: granularity, method and layers; a word alone is the granularity. */}}
{{- define "<%= chart %>.recompute" -}}
{{- $given := .Values.recompute }}
{{- merge dict (kindIs "map" $given | ternary $given (dict "granularity" $given)) (dict "method" "uniform" "layers" 1) | toYaml }}
{{- end }}

{{/* Whether the run uses GPUs: "true" or nothing. */}}
{{- define "<%= chart %>.gpu" -}}
{{- if ne (include "<%= chart %>.launcher" . | fromJson).task "data" }}true{{ end }}
{{- end }}

{{/* Pods of the run: the machines of a GPU program; the launcher's own number for a program without GPUs, else one. */}}
{{- define "<%= chart %>.nodes" -}}
{{- $launcher := include "<%= chart %>.launcher" . | fromJson }}
{{- if eq $launcher.processes "<%= kind.starts %>" }}{{ int64 .Values.nodes }}{{ else }}{{ $launcher.nodes | default 1 | int64 }}{{ end }}
{{- end }}

{{/* GPUs of each machine that the run uses: those asked for, or all. */}}
{{- define "<%= chart %>.gpusPerNode" -}}
{{- $machine := include "<%= chart %>.machine" . | fromJson }}
{{- .Values.gpusPerNode | default $machine.gpus | int64 }}
{{- end }}

{{/* Processes of the run, one for each GPU. */}}
{{- define "<%= chart %>.worldSize" -}}
{{- mul (include "<%= chart %>.gpusPerNode" . | int64) .Values.nodes }}
{{- end }}

{{/* Copies of the model that train side by side; cut to a whole number. */}}
{{- define "<%= chart %>.dataParallel" -}}
{{- $p := .Values.parallelism }}
{{- div (include "<%= chart %>.worldSize" . | int64) (mul $p.tensor $p.pipeline $p.context) | max 1 }}
{{- end }}

{{/* Samples of one step; "2/gpu" grows with the run. */}}
{{- define "<%= chart %>.globalBatch" -}}
{{- $global := .Values.batch.global }}
{{- if kindIs "string" $global }}
{{- mul (trimSuffix "/gpu" $global | int64) (include "<%= chart %>.worldSize" . | int64) }}
{{- else }}
{{- int64 $global }}
{{- end }}
{{- end }}

{{/* Layers that pipeline stages share: the model's, and embedding and loss where the program counts them too. */}}
{{- define "<%= chart %>.pipelineLayers" -}}
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
{{- define "<%= chart %>.unevenStages" -}}
{{- $config := (get .Values.launchers .Values.launcher).config | default (dict) }}
{{- $nested := kindIs "map" $config.model | ternary $config.model (dict) }}
{{- $uneven := false }}
{{- range list "first" "last" }}
{{- if or (get $config (printf "decoder-%s-pipeline-num-layers" .)) (get $nested (printf "num_layers_in_%s_pipeline_stage" .)) }}{{ $uneven = true }}{{ end }}
{{- end }}
{{- if $uneven }}true{{ end }}
{{- end }}

{{/* GPUs that share one expert: those asked for, or as many as share the rest of a layer. */}}
{{- define "<%= chart %>.expertTensor" -}}
{{- .Values.parallelism.expertTensor | default .Values.parallelism.tensor | int64 }}
{{- end }}
