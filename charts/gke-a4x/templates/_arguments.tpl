{{/* What a name in an argument, such as $(nodes), means; the start script fills in $(resume). */}}
{{- define "gke-a4x.fillings" -}}
nodes: {{ include "gke-a4x.nodes" . | quote }}
gpusPerNode: {{ include "gke-a4x.gpusPerNode" . | quote }}
worldSize: {{ include "gke-a4x.worldSize" . | quote }}
steps: {{ int64 .Values.steps | quote }}
microBatch: {{ int64 .Values.batch.micro | quote }}
globalBatch: {{ include "gke-a4x.globalBatch" . | quote }}
sequenceLength: {{ int64 .Values.sequenceLength | quote }}
precision: {{ quote .Values.precision }}
dataDirectory: {{ quote .Values.data.directory }}
run: {{ include "gke-a4x.run" . | quote }}
runDirectory: {{ include "gke-a4x.runDirectory" . | quote }}
checkpointDirectory: {{ printf "%s/checkpoints" (include "gke-a4x.home" .) | quote }}
checkpointInterval: {{ int64 .Values.checkpoint.interval | quote }}
{{- end }}

{{/* A user's argument with its names filled in; as in Kubernetes, $$(nodes) is the text $(nodes). Takes (list root text). */}}
{{- define "gke-a4x.filled" -}}
{{- $text := index . 1 }}
{{- if contains "$(" $text }}
{{- $text = replace "$$(" "\x00" $text }}
{{- range $name, $value := include "gke-a4x.fillings" (index . 0) | fromYaml }}
{{- $text = replace (printf "$(%s)" $name) $value $text }}
{{- end }}
{{- $text = replace "\x00" "$(" $text }}
{{- end }}
{{- $text }}
{{- end }}
