{{/*
Start script of every machine: of files/, what this run needs. Values reach it as variables and arguments only.
*/}}
{{- define "oke-h100.start" -}}
{{- $launcher := include "oke-h100.launcher" . | fromJson -}}
{{- $variables := include "oke-h100.env" . | fromYamlArray | include "oke-h100.names" -}}
{{ .Files.Get "files/start.sh" | replace "RELEASE_VARIABLES" $variables | trim }}
{{- if include "oke-h100.gpu" . }}
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
{{- if include "oke-h100.staged" . }}

{{ .Files.Get "files/stage.sh" | trim }}
{{- end }}
{{- end }}
{{- if include "oke-h100.gpu" . }}
{{ .Files.Get "files/fragments/topology-oke.sh" | trim }}
{{- end }}
{{- if eq .Values.launcher "megatron-lm" }}
{{- with .Files.Get "files/launchers/megatron-lm/beforeLaunch.sh" | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "torchrun" }}
{{- with .Files.Get "files/launchers/torchrun/beforeLaunch.sh" | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "mlperf-llama2-lora" }}
{{- with .Files.Get "files/launchers/mlperf-llama2-lora/beforeLaunch.sh" | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- if include "oke-h100.exporter" . }}

{{ .Files.Get "files/exporter.sh" | trim }}
{{- end }}
{{- if eq $launcher.processes "gpu" }}
{{ include "oke-h100.launch" . | trim }}
{{- else if eq $launcher.processes "one" }}
# exec: the program gets Kubernetes' SIGTERM, and its exit code is the container's.
exec {{ include "oke-h100.interpreter" $launcher.program }} "$@"
{{- else }}

{{ .Files.Get "files/workers.sh" | replace "INTERPRETER" (include "oke-h100.interpreter" $launcher.program) | trim }}
{{- end }}
{{- end }}

{{/* The end of the script of every process of a GPU program: it becomes the program. */}}
{{- define "oke-h100.rankProgram" }}
{{- if eq .Values.launcher "nemo-1" }}
{{- with include "oke-h100.launcher.nemo-1.beforeRank" . | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "automodel" }}
{{- with include "oke-h100.launcher.automodel.beforeRank" . | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "torchtitan" }}
{{- with include "oke-h100.launcher.torchtitan.beforeRank" . | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "torchrun" }}
{{- with .Files.Get "files/launchers/torchrun/beforeRank.sh" | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "mlperf-llama2-lora" }}
{{- with .Files.Get "files/launchers/mlperf-llama2-lora/beforeRank.sh" | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- $watch := "" }}
{{- if or (include "oke-h100.watched" .) (include "oke-h100.exporter" .) }}
{{- $watch = "python3 -u /etc/chartgen/watch.py \"${CHARTGEN_PROCESSES:-/run/chartgen/ranks}\" " }}
{{- end }}
exec {{ $watch }}{{ include "oke-h100.interpreter" (include "oke-h100.launcher" . | fromJson).program }} "$@"
{{- end }}

{{/* Whether a run that hangs is ended: "true" or nothing. */}}
{{- define "oke-h100.watched" -}}
{{- if and .Values.run.hangMinutes (eq (include "oke-h100.launcher" . | fromJson).task "train") }}true{{ end }}
{{- end }}

{{/* The interpreter of a program, from its name. */}}
{{- define "oke-h100.interpreter" -}}
{{- hasSuffix ".sh" . | ternary "bash" "python3 -u" }}
{{- end }}

{{/* Names of variables, as words. */}}
{{- define "oke-h100.names" -}}
{{- range $i, $entry := . }}{{ if $i }} {{ end }}{{ $entry.name }}{{ end }}
{{- end }}
