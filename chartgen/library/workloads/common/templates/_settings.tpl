{{/* Devices that fragments ask for on each machine; the user's values of the same name win over them. */}}
{{- define "<%= chart %>.slot.resourceLimits" -}}
<%= slot("resourceLimits.yaml", 0) %>
{{- end }}

{{/*
What a machine has to hand out, as {resource: quantity}, with every other resource that pods of these values request. Pods
of one machine may request less than those of several. setup.quota.resources adds to it, a map by the name of a machine type
only to that type.
*/}}
{{- define "<%= chart %>.machineResources" -}}
{{- $nodes := .Values.setup.quota.nodes | default (add .Values.nodes .Values.run.spares) | int64 | max 2 }}
{{- $machine := .Run.machine }}
{{- $run := merge (dict "Values" (merge (dict "nodes" $nodes) .Values)) (omit . "Run") }}
{{- include "<%= chart %>.figures" $run }}
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
{{- $each | toYaml }}
{{- end }}

{{/* A quantity times a number of machines, by (quantity, number, 1), or of GPUs, by (quantity, number, GPUs of a machine). */}}
{{- define "<%= chart %>.times" -}}
{{- $quantity := toString (index . 0) }}
{{- $number := regexFind "^[0-9.]+([eE][-+]?[0-9]+)?" $quantity | float64 | ceil }}
{{- printf "%d%s" (div (add (mul (index . 1 | default 0) $number) (index . 2) -1) (index . 2)) (regexFind "[A-Za-z]*$" $quantity) }}
{{- end }}

{{/* One value, by (root, "section.name"), as JSON: the launcher's default where it is null; nothing where both are. */}}
{{- define "<%= chart %>.setting" -}}
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
{{- define "<%= chart %>.recompute" -}}
{{- $given := .Values.recompute }}
{{- merge dict (kindIs "map" $given | ternary $given (dict "granularity" $given)) (dict "method" "uniform" "layers" 1) | toYaml }}
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

{{/* GPUs that share one expert: those asked for, or as many as share the rest of a layer. */}}
{{- define "<%= chart %>.expertTensor" -}}
{{- .Values.parallelism.expertTensor | default .Values.parallelism.tensor | int64 }}
{{- end }}

{{/*
Release of NVIDIA's NeMo image as a number, such as 2606; launchers.<name>.release where the image is another; 0 = unknown.
*/}}
{{- define "<%= chart %>.imageRelease" -}}
{{- $tag := regexFind "(^|/)nvidia/nemo:[0-9]{2}[.][0-9]{2}([^0-9]|$)" (.Run.launcher.image | default "") }}
{{- $release := (get .Values.launchers .Values.launcher).release | default (regexFind "[0-9]{2}[.][0-9]{2}" $tag) }}
{{- replace "." "" $release | default "0" }}
{{- end }}
