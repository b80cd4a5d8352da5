{{/*
Start script of every machine: of files/, what this run needs. Values reach it as variables and arguments only.
*/}}
{{- define "crusoe.start" -}}
{{- $launcher := include "crusoe.launcher" . | fromJson -}}
{{- $variables := include "crusoe.env" . | fromYamlArray | include "crusoe.names" -}}
{{ .Files.Get "files/start.sh" | replace "RELEASE_VARIABLES" $variables | trim }}
{{- if include "crusoe.gpu" . }}
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
{{- if include "crusoe.staged" . }}

{{ .Files.Get "files/stage.sh" | trim }}
{{- end }}
{{- end }}
{{- if include "crusoe.gpu" . }}
{{- if include "crusoe.infiniband" . }}
# InfiniBand: without these devices NCCL finds no adapter.
if ! compgen -G '/dev/infiniband/uverbs*' >/dev/null; then
  echo 'chartgen: the pod got no InfiniBand adapter in /dev/infiniband; does network.resource name the one of your device plugin?' >&2
  exit 1
fi
{{- end }}
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
{{- if include "crusoe.exporter" . }}

{{ .Files.Get "files/exporter.sh" | trim }}
{{- end }}
{{- if eq $launcher.processes "gpu" }}
{{ include "crusoe.launch" . | trim }}
{{- else if eq $launcher.processes "one" }}
# exec: the program gets Kubernetes' SIGTERM, and its exit code is the container's.
exec {{ include "crusoe.interpreter" $launcher.program }} "$@"
{{- else }}

{{ .Files.Get "files/workers.sh" | replace "INTERPRETER" (include "crusoe.interpreter" $launcher.program) | trim }}
{{- end }}
{{- end }}

{{/* The end of the script of every process of a GPU program: it becomes the program. */}}
{{- define "crusoe.rankProgram" }}
{{- if eq .Values.launcher "nemo-1" }}
{{- with include "crusoe.launcher.nemo-1.beforeRank" . | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "automodel" }}
{{- with include "crusoe.launcher.automodel.beforeRank" . | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "torchtitan" }}
{{- with include "crusoe.launcher.torchtitan.beforeRank" . | trim }}
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
{{- if or (include "crusoe.watched" .) (include "crusoe.exporter" .) }}
{{- $watch = "python3 -u /etc/chartgen/watch.py \"${CHARTGEN_PROCESSES:-/run/chartgen/ranks}\" " }}
{{- end }}
exec {{ $watch }}{{ include "crusoe.interpreter" (include "crusoe.launcher" . | fromJson).program }} "$@"
{{- end }}

{{/* Whether a run that hangs is ended: "true" or nothing. */}}
{{- define "crusoe.watched" -}}
{{- if and .Values.run.hangMinutes (eq (include "crusoe.launcher" . | fromJson).task "train") }}true{{ end }}
{{- end }}

{{/* The interpreter of a program, from its name. */}}
{{- define "crusoe.interpreter" -}}
{{- hasSuffix ".sh" . | ternary "bash" "python3 -u" }}
{{- end }}

{{/* Names of variables, as words. */}}
{{- define "crusoe.names" -}}
{{- range $i, $entry := . }}{{ if $i }} {{ end }}{{ $entry.name }}{{ end }}
{{- end }}
