{{/* What the exporter of a machine's steps needs, as YAML; nothing without one. */}}
{{- define "gke-a3mega.exporter" -}}
{{- $launcher := .Run.launcher }}
{{- if and .Values.run.metricsPort (eq $launcher.task "train") }}
port: {{ int64 .Values.run.metricsPort }}
find: {{ include "gke-a3mega.stepPatterns" . }}
also: {{ ($launcher.stepLine | default dict).also | default list | toRawJson }}
gpus: {{ .Run.worldSize }}
{{- if include "gke-a3mega.reaches" (list $launcher "steps" "$(steps)") }}
steps: {{ int64 .Values.steps }}
{{- end }}
{{- if include "gke-a3mega.reaches" (list $launcher "batch.global" "$(globalBatch)") }}
batch: {{ .Run.globalBatch }}
{{- end }}
{{- if include "gke-a3mega.reaches" (list $launcher "sequenceLength" "$(sequenceLength)") }}
sequence: {{ int64 .Values.sequenceLength }}
{{- end }}
{{- end }}
{{- end }}

{{/* The expressions that read the line of a step, as a JSON list: the user's, or the launcher's. */}}
{{- define "gke-a3mega.stepPatterns" -}}
{{- $launcher := .Run.launcher }}
{{- (get .Values.launchers .Values.launcher).metrics | default ($launcher.stepLine | default dict).find | default list | toRawJson }}
{{- end }}

{{/* Whether a value reaches the program: "true" or nothing. Takes (list launcher key name-in-an-argument). */}}
{{- define "gke-a3mega.reaches" -}}
{{- $launcher := index . 0 }}
{{- if or (hasKey $launcher.owns (index . 1)) (contains (index . 2) (join " " $launcher.args)) }}true{{ end }}
{{- end }}
