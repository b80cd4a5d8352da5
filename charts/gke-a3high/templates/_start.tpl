{{/*
Start script of every machine: of files/, what this run needs. Values reach it as variables and arguments only.
*/}}
{{- define "gke-a3high.start" -}}
{{- $launcher := include "gke-a3high.launcher" . | fromJson -}}
{{- $variables := include "gke-a3high.env" . | fromYamlArray | include "gke-a3high.names" -}}
{{ .Files.Get "files/start.sh" | replace "RELEASE_VARIABLES" $variables | trim }}
{{- if include "gke-a3high.gpu" . }}
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
{{- if include "gke-a3high.staged" . }}

{{ .Files.Get "files/stage.sh" | trim }}
{{- end }}
{{- end }}
{{- if include "gke-a3high.gpu" . }}
# GPUDirect-TCPX: without its plugin NCCL would fall back to TCP, many times slower, without a word.
plugin=/usr/local/tcpx/lib64
if [[ ! -e $plugin/libnccl-net-tcpx.so ]]; then
  echo "chartgen: no libnccl-net-tcpx.so in $plugin: the plugin was not installed" >&2
  exit 1
fi
{{- if eq (include "gke-a3high.tcpxNccl" .) "plugin" }}
# The plugin's NCCL must be found before the one in the image.
export LD_LIBRARY_PATH="$plugin:/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
{{- else }}
# The image's NCCL must be found before an older one beside the plugin.
export LD_LIBRARY_PATH="/usr/local/cuda/lib64:/lib/x86_64-linux-gnu:$plugin:/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
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
{{- if include "gke-a3high.exporter" . }}

{{ .Files.Get "files/exporter.sh" | trim }}
{{- end }}
{{- if eq $launcher.processes "gpu" }}
{{ include "gke-a3high.launch" . | trim }}
{{- else if eq $launcher.processes "one" }}
# exec: the program gets Kubernetes' SIGTERM, and its exit code is the container's.
exec {{ include "gke-a3high.interpreter" $launcher.program }} "$@"
{{- else }}

{{ .Files.Get "files/workers.sh" | replace "INTERPRETER" (include "gke-a3high.interpreter" $launcher.program) | trim }}
{{- end }}
{{- end }}

{{/* The end of the script of every process of a GPU program: it becomes the program. */}}
{{- define "gke-a3high.rankProgram" }}
{{- if eq .Values.launcher "nemo-1" }}
{{- with include "gke-a3high.launcher.nemo-1.beforeRank" . | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "automodel" }}
{{- with include "gke-a3high.launcher.automodel.beforeRank" . | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "torchtitan" }}
{{- with include "gke-a3high.launcher.torchtitan.beforeRank" . | trim }}
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
{{- if or (include "gke-a3high.watched" .) (include "gke-a3high.exporter" .) }}
{{- $watch = "python3 -u /etc/chartgen/watch.py \"${CHARTGEN_PROCESSES:-/run/chartgen/ranks}\" " }}
{{- end }}
exec {{ $watch }}{{ include "gke-a3high.interpreter" (include "gke-a3high.launcher" . | fromJson).program }} "$@"
{{- end }}

{{/* Whether a run that hangs is ended: "true" or nothing. */}}
{{- define "gke-a3high.watched" -}}
{{- if and .Values.run.hangMinutes (eq (include "gke-a3high.launcher" . | fromJson).task "train") }}true{{ end }}
{{- end }}

{{/* The interpreter of a program, from its name. */}}
{{- define "gke-a3high.interpreter" -}}
{{- hasSuffix ".sh" . | ternary "bash" "python3 -u" }}
{{- end }}

{{/* Names of variables, as words. */}}
{{- define "gke-a3high.names" -}}
{{- range $i, $entry := . }}{{ if $i }} {{ end }}{{ $entry.name }}{{ end }}
{{- end }}
