{{/* What a name in an argument, such as $(nodes), means; the start script fills in $(resume). */}}
{{- define "onprem-p8000.fillings" -}}
nodes: {{ include "onprem-p8000.nodes" . | quote }}
gpusPerNode: {{ include "onprem-p8000.gpusPerNode" . | quote }}
worldSize: {{ include "onprem-p8000.worldSize" . | quote }}
steps: {{ int64 .Values.steps | quote }}
microBatch: {{ int64 .Values.batch.micro | quote }}
globalBatch: {{ include "onprem-p8000.globalBatch" . | quote }}
sequenceLength: {{ int64 .Values.sequenceLength | quote }}
precision: {{ quote .Values.precision }}
dataDirectory: {{ quote .Values.data.directory }}
run: {{ include "onprem-p8000.run" . | quote }}
runDirectory: {{ include "onprem-p8000.runDirectory" . | quote }}
checkpointDirectory: {{ printf "%s/checkpoints" (include "onprem-p8000.home" .) | quote }}
checkpointInterval: {{ int64 .Values.checkpoint.interval | quote }}
{{- end }}

{{/* A user's argument with its names filled in; as in Kubernetes, $$(nodes) is the text $(nodes). Takes (list root text). */}}
{{- define "onprem-p8000.filled" -}}
{{- $text := index . 1 }}
{{- if contains "$(" $text }}
{{- $text = replace "$$(" "\x00" $text }}
{{- range $name, $value := include "onprem-p8000.fillings" (index . 0) | fromYaml }}
{{- $text = replace (printf "$(%s)" $name) $value $text }}
{{- end }}
{{- $text = replace "\x00" "$(" $text }}
{{- end }}
{{- $text }}
{{- end }}
