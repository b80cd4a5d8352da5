{{/*
Start script of every machine: of files/, what this run needs. Values reach it as variables and arguments only.
*/}}
{{- define "gke-a3high.start" -}}
{{- $variables := list }}
{{- range .Run.env | fromYamlArray }}{{ $variables = append $variables .name }}{{ end -}}
{{ .Files.Get "files/start.sh" | replace "RELEASE_VARIABLES" (join " " $variables) | trim }}
{{- if .Run.gpu }}
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
{{- if .Run.watched }}

# A machine that ends before its program starts leaves a black box too.
trap 'python3 /etc/chartgen/watch.py --ended "$?" || true' EXIT
{{- end }}
{{- with .Run.examination }}

# A machine that is not fit ends before others wait for it.
{{ include "gke-a3high.examine" $ }}
{{- end }}
{{- if .Run.staged }}

{{ .Files.Get "files/stage.sh" | trim }}
{{- end }}
{{- end }}
{{- if .Run.gpu }}
# GPUDirect-TCPX: without its plugin NCCL would fall back to TCP, many times slower, without a word.
plugin=/usr/local/tcpx/lib64
[[ -e $plugin/libnccl-net-tcpx.so ]] || refuse "no libnccl-net-tcpx.so in $plugin: the plugin was not installed"
{{- if eq (include "gke-a3high.tcpxNccl" .) "plugin" }}
# The plugin's NCCL must be found before the one in the image.
export LD_LIBRARY_PATH="$plugin:/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
{{- else }}
# The image's NCCL must be found before an older one beside the plugin.
export LD_LIBRARY_PATH="/usr/local/cuda/lib64:/lib/x86_64-linux-gnu:$plugin:/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
{{- end }}
{{- end }}
{{- with include (printf "gke-a3high.launcher.%s.beforeLaunch" .Values.launcher) . | trim }}
{{ . }}
{{- end }}
{{- if .Run.exporter }}

{{ .Files.Get "files/exporter.sh" | trim }}
{{- end }}
{{- if eq .Run.launcher.processes "gpu" }}
{{ include "gke-a3high.launch" . | trim }}
{{- else if eq .Run.launcher.processes "one" }}
# exec: the program gets Kubernetes' SIGTERM, and its exit code is the container's.
exec {{ include "gke-a3high.interpreter" .Run.launcher.program }} "$@"
{{- end }}
{{- end }}

{{- define "gke-a3high.examine" -}}
python3 -u /etc/chartgen/examine.py "$RUN_DIRECTORY/machines" {{ .Run.examination }} 2>&1 | tee -a "$CHARTGEN_PRELUDE"
{{- end }}

{{/* The end of the script of every process of a GPU program: it becomes the program. */}}
{{- define "gke-a3high.rankProgram" }}
{{- if and .Run.examination .Values.run.spares }}

{{ .Files.Get "files/examined.sh" | replace "EXAMINE" (include "gke-a3high.examine" .) | trim }}
{{- end }}
{{- with include (printf "gke-a3high.launcher.%s.beforeRank" .Values.launcher) . | trim }}
{{ . }}
{{- end }}
{{- $watch := "" }}
{{- if or .Run.watched .Run.exporter }}
{{- $watch = "python3 -u /etc/chartgen/watch.py \"${CHARTGEN_PROCESSES:-/run/chartgen/ranks}\" " }}
{{- end }}
exec {{ $watch }}{{ include "gke-a3high.interpreter" .Run.launcher.program }} "$@"
{{- end }}

{{/* The interpreter of a program, from its name. */}}
{{- define "gke-a3high.interpreter" -}}
{{- hasSuffix ".sh" . | ternary "bash" "python3 -u" }}
{{- end }}
