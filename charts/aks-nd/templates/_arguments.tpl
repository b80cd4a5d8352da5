{{/* What a name in an argument, such as $(nodes), means; the start script fills in $(resume). */}}
{{- define "aks-nd.fillings" -}}
nodes: {{ include "aks-nd.nodes" . | quote }}
gpusPerNode: {{ include "aks-nd.gpusPerNode" . | quote }}
worldSize: {{ include "aks-nd.worldSize" . | quote }}
steps: {{ int64 .Values.steps | quote }}
microBatch: {{ int64 .Values.batch.micro | quote }}
globalBatch: {{ include "aks-nd.globalBatch" . | quote }}
sequenceLength: {{ int64 .Values.sequenceLength | quote }}
precision: {{ quote .Values.precision }}
dataDirectory: {{ quote .Values.data.directory }}
run: {{ include "aks-nd.run" . | quote }}
runDirectory: {{ include "aks-nd.runDirectory" . | quote }}
checkpointDirectory: {{ printf "%s/checkpoints" (include "aks-nd.home" .) | quote }}
checkpointInterval: {{ int64 .Values.checkpoint.interval | quote }}
{{- end }}

{{/* A user's argument with its names filled in; as in Kubernetes, $$(nodes) is the text $(nodes). Takes (list root text). */}}
{{- define "aks-nd.filled" -}}
{{- $text := index . 1 }}
{{- if contains "$(" $text }}
{{- $text = replace "$$(" "\x00" $text }}
{{- range $name, $value := include "aks-nd.fillings" (index . 0) | fromYaml }}
{{- $text = replace (printf "$(%s)" $name) $value $text }}
{{- end }}
{{- $text = replace "\x00" "$(" $text }}
{{- end }}
{{- $text }}
{{- end }}
