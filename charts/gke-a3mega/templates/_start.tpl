{{/*
Start script of every machine: of files/, what this run needs. Values reach it as variables and arguments only.
*/}}
{{- define "gke-a3mega.start" -}}
{{- $launcher := include "gke-a3mega.launcher" . | fromJson -}}
{{- $variables := include "gke-a3mega.env" . | fromYamlArray | include "gke-a3mega.names" -}}
{{ .Files.Get "files/start.sh" | replace "RELEASE_VARIABLES" $variables | trim }}
{{- if include "gke-a3mega.gpu" . }}
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
{{- if include "gke-a3mega.staged" . }}

{{ .Files.Get "files/stage.sh" | trim }}
{{- end }}
{{- end }}
{{- if include "gke-a3mega.gpu" . }}
{{ .Files.Get "files/fragments/gpudirect-tcpxo.sh" | trim }}
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
{{- if include "gke-a3mega.exporter" . }}

{{ .Files.Get "files/exporter.sh" | trim }}
{{- end }}
{{- if eq $launcher.processes "gpu" }}
{{ include "gke-a3mega.launch" . | trim }}
{{- else if eq $launcher.processes "one" }}
# exec: the program gets Kubernetes' SIGTERM, and its exit code is the container's.
exec {{ include "gke-a3mega.interpreter" $launcher.program }} "$@"
{{- else }}

{{ .Files.Get "files/workers.sh" | replace "INTERPRETER" (include "gke-a3mega.interpreter" $launcher.program) | trim }}
{{- end }}
{{- end }}

{{/* The end of the script of every process of a GPU program: it becomes the program. */}}
{{- define "gke-a3mega.rankProgram" }}
{{- if eq .Values.launcher "nemo-1" }}
{{- with include "gke-a3mega.launcher.nemo-1.beforeRank" . | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "automodel" }}
{{- with include "gke-a3mega.launcher.automodel.beforeRank" . | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "torchtitan" }}
{{- with include "gke-a3mega.launcher.torchtitan.beforeRank" . | trim }}
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
{{- if or (include "gke-a3mega.watched" .) (include "gke-a3mega.exporter" .) }}
{{- $watch = "python3 -u /etc/chartgen/watch.py \"${CHARTGEN_PROCESSES:-/run/chartgen/ranks}\" " }}
{{- end }}
exec {{ $watch }}{{ include "gke-a3mega.interpreter" (include "gke-a3mega.launcher" . | fromJson).program }} "$@"
{{- end }}

{{/* Whether a run that hangs is ended: "true" or nothing. */}}
{{- define "gke-a3mega.watched" -}}
{{- if and .Values.run.hangMinutes (eq (include "gke-a3mega.launcher" . | fromJson).task "train") }}true{{ end }}
{{- end }}

{{/* The interpreter of a program, from its name. */}}
{{- define "gke-a3mega.interpreter" -}}
{{- hasSuffix ".sh" . | ternary "bash" "python3 -u" }}
{{- end }}

{{/* Names of variables, as words. */}}
{{- define "gke-a3mega.names" -}}
{{- range $i, $entry := . }}{{ if $i }} {{ end }}{{ $entry.name }}{{ end }}
{{- end }}
