{{/* Devices that fragments ask for on each machine; the user's values of the same name win over them. */}}
{{- define "crusoe-setup.slot.resourceLimits" -}}
{{- /* nvidia-gpu */}}
# Quoted: an unquoted quantity makes each unchanged upgrade a change.
nvidia.com/gpu: {{ .Run.gpusPerNode | quote }}
{{- /* infiniband */}}
{{- if and (include "crusoe-setup.infiniband" .) .Values.network.resource }}
{{ .Values.network.resource }}: {{ include "crusoe-setup.infinibandCount" . | quote }}
{{- end }}
{{- end }}

{{/*
What a queue may hand out, as {resource: quantity}: all of setup.quota.nodes machines, or of as many as the run has, with
every other resource that pods of these values request. setup.quota.resources adds to what a machine has, a map by the name
of a machine type only to that type.
*/}}
{{- define "crusoe-setup.quota" -}}
{{- $nodes := .Values.setup.quota.nodes | default .Values.nodes | int64 }}
{{- $machine := .Run.machine }}
{{- $run := merge (dict "Values" (merge (dict "nodes" $nodes) .Values)) (omit . "Run") }}
{{- include "crusoe-setup.figures" $run }}
{{- $each := dict }}
{{- $given := .Values.setup.quota.resources | default dict }}
{{- with get $given .Values.machineType }}{{ if kindIs "map" . }}{{ $each = merge $each . }}{{ end }}{{ end }}
{{- range $name, $quantity := $given }}
{{- if not (or (kindIs "map" $quantity) (hasKey $each $name)) }}{{ $_ := set $each $name $quantity }}{{ end }}
{{- end }}
{{- $each = merge $each $machine.capacity }}
{{- $_ := merge $each (include "crusoe-setup.slot.resourceLimits" $run | fromYaml) }}
{{- range prepend (values .Values.launchers) (get .Values.launchers .Values.launcher | default dict) }}
{{- with .resources }}
{{- $_ := merge $each (.limits | default (dict)) (.requests | default (dict)) }}
{{- end }}
{{- end }}
{{- range $name, $quantity := $each }}
{{- $number := regexFind "^[0-9.]+([eE][-+]?[0-9]+)?" (toString $quantity) | float64 | ceil }}
{{ $name }}: {{ printf "%d%s" (mul $nodes $number) (regexFind "[A-Za-z]*$" (toString $quantity)) | quote }}
{{- end }}
{{- end }}
