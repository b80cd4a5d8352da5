{{/* What a name in an argument, such as $(nodes), means; the start script fills in $(resume). */}}
{{- define "<%= chart %>.fillings" -}}
nodes: {{ include "<%= chart %>.nodes" . | quote }}
gpusPerNode: {{ include "<%= chart %>.gpusPerNode" . | quote }}
worldSize: {{ include "<%= chart %>.worldSize" . | quote }}
steps: {{ int64 .Values.steps | quote }}
microBatch: {{ int64 .Values.batch.micro | quote }}
globalBatch: {{ include "<%= chart %>.globalBatch" . | quote }}
sequenceLength: {{ int64 .Values.sequenceLength | quote }}
precision: {{ quote .Values.precision }}
dataDirectory: {{ quote .Values.data.directory }}
run: {{ include "<%= chart %>.run" . | quote }}
runDirectory: {{ include "<%= chart %>.runDirectory" . | quote }}
checkpointDirectory: {{ printf "%s/checkpoints" (include "<%= chart %>.home" .) | quote }}
checkpointInterval: {{ int64 .Values.checkpoint.interval | quote }}
{{- end }}

{{/* A user's argument with its names filled in; as in Kubernetes, $$(nodes) is the text $(nodes). Takes (list root text). */}}
{{- define "<%= chart %>.filled" -}}
{{- $text := index . 1 }}
{{- if contains "$(" $text }}
{{- $text = replace "$$(" "\x00" $text }}
{{- range $name, $value := include "<%= chart %>.fillings" (index . 0) | fromYaml }}
{{- $text = replace (printf "$(%s)" $name) $value $text }}
{{- end }}
{{- $text = replace "\x00" "$(" $text }}
{{- end }}
{{- $text }}
{{- end }}
