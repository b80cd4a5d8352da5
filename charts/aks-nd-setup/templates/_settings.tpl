{{/* Devices that fragments ask for on each machine; the user's values of the same name win over them. */}}
{{- define "aks-nd-setup.slot.resourceLimits" -}}
{{- /* nvidia-gpu */}}
# Quoted: an unquoted quantity makes each unchanged upgrade a change.
nvidia.com/gpu: {{ .Run.gpusPerNode | quote }}
{{- /* infiniband */}}
{{- if and (include "aks-nd-setup.infiniband" .) .Values.network.resource }}
{{ .Values.network.resource }}: {{ include "aks-nd-setup.infinibandCount" . | quote }}
{{- end }}
{{- end }}

{{/*
What a machine has to hand out, as {resource: quantity}, with every other resource that pods of these values request. Pods
of one machine may request less than those of several. setup.quota.resources adds to it, a map by the name of a machine type
only to that type.
*/}}
{{- define "aks-nd-setup.machineResources" -}}
{{- $nodes := .Values.setup.quota.nodes | default (add .Values.nodes .Values.run.spares) | int64 | max 2 }}
{{- $machine := .Run.machine }}
{{- $run := merge (dict "Values" (merge (dict "nodes" $nodes) .Values)) (omit . "Run") }}
{{- include "aks-nd-setup.figures" $run }}
{{- $each := dict }}
{{- $given := .Values.setup.quota.resources | default dict }}
{{- with get $given .Values.machineType }}{{ if kindIs "map" . }}{{ $each = merge $each . }}{{ end }}{{ end }}
{{- range $name, $quantity := $given }}
{{- if not (or (kindIs "map" $quantity) (hasKey $each $name)) }}{{ $_ := set $each $name $quantity }}{{ end }}
{{- end }}
{{- $each = merge $each $machine.capacity }}
{{- $_ := merge $each (include "aks-nd-setup.slot.resourceLimits" $run | fromYaml) }}
{{- range prepend (values .Values.launchers) (get .Values.launchers .Values.launcher | default dict) }}
{{- with .resources }}
{{- $_ := merge $each (.limits | default (dict)) (.requests | default (dict)) }}
{{- end }}
{{- end }}
{{- $each | toYaml }}
{{- end }}

{{/* A quantity times a number of machines, by (quantity, number, 1), or of GPUs, by (quantity, number, GPUs of a machine). */}}
{{- define "aks-nd-setup.times" -}}
{{- $quantity := toString (index . 0) }}
{{- $number := regexFind "^[0-9.]+([eE][-+]?[0-9]+)?" $quantity | float64 | ceil }}
{{- printf "%d%s" (div (add (mul (index . 1 | default 0) $number) (index . 2) -1) (index . 2)) (regexFind "[A-Za-z]*$" $quantity) }}
{{- end }}
