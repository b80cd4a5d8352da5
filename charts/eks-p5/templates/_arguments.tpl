{{/* What a name in an argument, such as $(nodes), means; the start script fills in $(resume). */}}
{{- define "eks-p5.fillings" -}}
nodes: {{ include "eks-p5.nodes" . | quote }}
gpusPerNode: {{ include "eks-p5.gpusPerNode" . | quote }}
worldSize: {{ include "eks-p5.worldSize" . | quote }}
steps: {{ int64 .Values.steps | quote }}
microBatch: {{ int64 .Values.batch.micro | quote }}
globalBatch: {{ include "eks-p5.globalBatch" . | quote }}
sequenceLength: {{ int64 .Values.sequenceLength | quote }}
precision: {{ quote .Values.precision }}
dataDirectory: {{ quote .Values.data.directory }}
run: {{ include "eks-p5.run" . | quote }}
runDirectory: {{ include "eks-p5.runDirectory" . | quote }}
checkpointDirectory: {{ printf "%s/checkpoints" (include "eks-p5.home" .) | quote }}
checkpointInterval: {{ int64 .Values.checkpoint.interval | quote }}
{{- end }}

{{/* A user's argument with its names filled in; as in Kubernetes, $$(nodes) is the text $(nodes). Takes (list root text). */}}
{{- define "eks-p5.filled" -}}
{{- $text := index . 1 }}
{{- if contains "$(" $text }}
{{- $text = replace "$$(" "\x00" $text }}
{{- range $name, $value := include "eks-p5.fillings" (index . 0) | fromYaml }}
{{- $text = replace (printf "$(%s)" $name) $value $text }}
{{- end }}
{{- $text = replace "\x00" "$(" $text }}
{{- end }}
{{- $text }}
{{- end }}
