{{/* What a name in an argument, such as $(nodes), means; the start script fills in $(resume). */}}
{{- define "gke-a4.fillings" -}}
nodes: {{ .Run.nodes | quote }}
gpusPerNode: {{ .Run.gpusPerNode | quote }}
worldSize: {{ .Run.worldSize | quote }}
steps: {{ int64 .Values.steps | quote }}
microBatch: {{ int64 .Values.batch.micro | quote }}
globalBatch: {{ .Run.globalBatch | quote }}
sequenceLength: {{ int64 .Values.sequenceLength | quote }}
precision: {{ quote .Values.precision }}
dataDirectory: {{ quote .Values.data.directory }}
run: {{ .Run.name | quote }}
runDirectory: {{ .Run.directory | quote }}
checkpointDirectory: {{ printf "%s/checkpoints" .Run.home | quote }}
checkpointInterval: {{ int64 .Values.checkpoint.interval | quote }}
{{- end }}

{{/* A user's argument with its names filled in; as in Kubernetes, $$(nodes) is the text $(nodes). Takes (list root text). */}}
{{- define "gke-a4.filled" -}}
{{- $text := index . 1 }}
{{- if contains "$(" $text }}
{{- $text = replace "$$(" "\x00" $text }}
{{- range $name, $value := include "gke-a4.fillings" (index . 0) | fromYaml }}
{{- $text = replace (printf "$(%s)" $name) $value $text }}
{{- end }}
{{- $text = replace "\x00" "$(" $text }}
{{- end }}
{{- $text }}
{{- end }}
