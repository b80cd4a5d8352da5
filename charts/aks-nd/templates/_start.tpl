{{/*
Start script of every machine: of files/, what this run needs. Values reach it as variables and arguments only.
*/}}
{{- define "aks-nd.start" -}}
{{- $launcher := include "aks-nd.launcher" . | fromJson -}}
{{- $variables := include "aks-nd.env" . | fromYamlArray | include "aks-nd.names" -}}
{{ .Files.Get "files/start.sh" | replace "RELEASE_VARIABLES" $variables | trim }}
{{- if include "aks-nd.gpu" . }}
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
{{- if include "aks-nd.staged" . }}

{{ .Files.Get "files/stage.sh" | trim }}
{{- end }}
{{- end }}
{{- if include "aks-nd.gpu" . }}
{{- if include "aks-nd.infiniband" . }}
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
{{- if include "aks-nd.exporter" . }}

{{ .Files.Get "files/exporter.sh" | trim }}
{{- end }}
{{- if eq $launcher.processes "gpu" }}
{{ include "aks-nd.launch" . | trim }}
{{- else if eq $launcher.processes "one" }}
# exec: the program gets Kubernetes' SIGTERM, and its exit code is the container's.
exec {{ include "aks-nd.interpreter" $launcher.program }} "$@"
{{- else }}

{{ .Files.Get "files/workers.sh" | replace "INTERPRETER" (include "aks-nd.interpreter" $launcher.program) | trim }}
{{- end }}
{{- end }}

{{/* The end of the script of every process of a GPU program: it becomes the program. */}}
{{- define "aks-nd.rankProgram" }}
{{- if eq .Values.launcher "nemo-1" }}
{{- with include "aks-nd.launcher.nemo-1.beforeRank" . | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "automodel" }}
{{- with include "aks-nd.launcher.automodel.beforeRank" . | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "torchtitan" }}
{{- with include "aks-nd.launcher.torchtitan.beforeRank" . | trim }}
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
{{- if or (include "aks-nd.watched" .) (include "aks-nd.exporter" .) }}
{{- $watch = "python3 -u /etc/chartgen/watch.py \"${CHARTGEN_PROCESSES:-/run/chartgen/ranks}\" " }}
{{- end }}
exec {{ $watch }}{{ include "aks-nd.interpreter" (include "aks-nd.launcher" . | fromJson).program }} "$@"
{{- end }}

{{/* Whether a run that hangs is ended: "true" or nothing. */}}
{{- define "aks-nd.watched" -}}
{{- if and .Values.run.hangMinutes (eq (include "aks-nd.launcher" . | fromJson).task "train") }}true{{ end }}
{{- end }}

{{/* The interpreter of a program, from its name. */}}
{{- define "aks-nd.interpreter" -}}
{{- hasSuffix ".sh" . | ternary "bash" "python3 -u" }}
{{- end }}

{{/* Names of variables, as words. */}}
{{- define "aks-nd.names" -}}
{{- range $i, $entry := . }}{{ if $i }} {{ end }}{{ $entry.name }}{{ end }}
{{- end }}
