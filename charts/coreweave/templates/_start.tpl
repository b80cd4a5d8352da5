{{/*
Start script of every machine: of files/, what this run needs. Values reach it as variables and arguments only.
*/}}
{{- define "coreweave.start" -}}
{{- $variables := list }}
{{- range .Run.env | fromYamlArray }}{{ $variables = append $variables .name }}{{ end -}}
{{ .Files.Get "files/start.sh" | replace "RELEASE_VARIABLES" (join " " $variables) | trim }}
{{- if .Run.gpu }}
{{- if and .Run.mustProgress (include "coreweave.attempt" .) (not .Values.run.spares) }}

{{ .Files.Get "files/progress.sh" | trim }}
{{ end }}
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
{{- if .Run.watched }}

# A machine that ends before its program starts leaves a black box too.
trap 'python3 /etc/chartgen/watch.py --ended "$?" || true' EXIT
{{- end }}
{{- with .Run.examination }}

# A machine that is not fit ends before others wait for it.
{{ include "coreweave.examine" $ }}
{{- end }}
{{- if .Run.staged }}

{{ .Files.Get "files/stage.sh" | trim }}
{{- end }}
{{- end }}
{{- if .Run.gpu }}
{{- if include "coreweave.infiniband" . }}
# InfiniBand: without these devices NCCL finds no adapter.
compgen -G '/dev/infiniband/uverbs*' >/dev/null ||
  refuse 'the pod got no InfiniBand adapter in /dev/infiniband; does network.resource name the one of your device plugin?'
{{- end }}
{{- end }}
{{- with include (printf "coreweave.launcher.%s.beforeLaunch" .Values.launcher) . | trim }}
{{ . }}
{{- end }}
{{- if .Run.exporter }}

{{ .Files.Get "files/exporter.sh" | trim }}
{{- end }}
{{- if eq .Run.launcher.processes "gpu" }}
{{ include "coreweave.launch" . | trim }}
{{- else if eq .Run.launcher.processes "one" }}
# exec: the program gets Kubernetes' SIGTERM, and its exit code is the container's.
exec {{ include "coreweave.interpreter" .Run.launcher.program }} "$@"
{{- end }}
{{- end }}

{{- define "coreweave.examine" -}}
python3 -u /etc/chartgen/examine.py "$RUN_DIRECTORY/machines" {{ .Run.examination }} 2>&1 | tee -a "$CHARTGEN_PRELUDE"
{{- end }}

{{/* The end of the script of every process of a GPU program: it becomes the program. */}}
{{- define "coreweave.rankProgram" }}
{{- include "coreweave.beforeProcess" . }}
{{- if and .Run.examination .Values.run.spares }}

{{ .Files.Get "files/examined.sh" | replace "EXAMINE" (include "coreweave.examine" .) | trim }}
{{- end }}
{{- with include (printf "coreweave.launcher.%s.beforeRank" .Values.launcher) . | trim }}
{{ . }}
{{- end }}
{{- $watch := "" }}
{{- if or .Run.watched .Run.exporter }}
{{- $watch = "python3 -u /etc/chartgen/watch.py \"${CHARTGEN_PROCESSES:-/run/chartgen/ranks}\" " }}
{{- end }}
exec {{ $watch }}{{ include "coreweave.interpreter" .Run.launcher.program }} "$@"
{{- end }}

{{/* The interpreter of a program, from its name. */}}
{{- define "coreweave.interpreter" -}}
{{- hasSuffix ".sh" . | ternary "bash" "python3 -u" }}
{{- end }}
