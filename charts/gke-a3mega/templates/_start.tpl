{{/*
Start script of every machine: of files/, what this run needs. Values reach it as variables and arguments only.
*/}}
{{- define "gke-a3mega.start" -}}
{{- $variables := list }}
{{- range .Run.env | fromYamlArray }}{{ $variables = append $variables .name }}{{ end -}}
{{ .Files.Get "files/start.sh" | replace "RELEASE_VARIABLES" (join " " $variables) | trim }}
{{- if .Run.gpu }}
{{- if and .Run.mustProgress (include "gke-a3mega.attempt" .) (not .Values.run.spares) }}

{{ .Files.Get "files/progress.sh" | trim }}
{{ end }}
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
{{- if .Run.watched }}

# A machine that ends before its program starts leaves a black box too.
trap 'python3 /etc/chartgen/watch.py --ended "$?" || true' EXIT
{{- end }}
{{- with .Run.examination }}

# A machine that is not fit ends before others wait for it.
{{ include "gke-a3mega.examine" $ }}
{{- end }}
{{- if .Run.staged }}

{{ .Files.Get "files/stage.sh" | trim }}
{{- end }}
{{- end }}
{{- if .Run.gpu }}
{{ .Files.Get "files/fragments/gpudirect-tcpxo.sh" | trim }}
{{- end }}
{{- with include (printf "gke-a3mega.launcher.%s.beforeLaunch" .Values.launcher) . | trim }}
{{ . }}
{{- end }}
{{- if .Run.exporter }}

{{ .Files.Get "files/exporter.sh" | trim }}
{{- end }}
{{- if eq .Run.launcher.processes "gpu" }}
{{ include "gke-a3mega.launch" . | trim }}
{{- else if eq .Run.launcher.processes "one" }}
# exec: the program gets Kubernetes' SIGTERM, and its exit code is the container's.
exec {{ include "gke-a3mega.interpreter" .Run.launcher.program }} "$@"
{{- end }}
{{- end }}

{{- define "gke-a3mega.examine" -}}
python3 -u /etc/chartgen/examine.py "$RUN_DIRECTORY/machines" {{ .Run.examination }} 2>&1 | tee -a "$CHARTGEN_PRELUDE"
{{- end }}

{{/* The end of the script of every process of a GPU program: it becomes the program. */}}
{{- define "gke-a3mega.rankProgram" }}
{{- include "gke-a3mega.beforeProcess" . }}
{{- if and .Run.examination .Values.run.spares }}

{{ .Files.Get "files/examined.sh" | replace "EXAMINE" (include "gke-a3mega.examine" .) | trim }}
{{- end }}
{{- with include (printf "gke-a3mega.launcher.%s.beforeRank" .Values.launcher) . | trim }}
{{ . }}
{{- end }}
{{- $watch := "" }}
{{- if or .Run.watched .Run.exporter }}
{{- $watch = "python3 -u /etc/chartgen/watch.py \"${CHARTGEN_PROCESSES:-/run/chartgen/ranks}\" " }}
{{- end }}
exec {{ $watch }}{{ include "gke-a3mega.interpreter" .Run.launcher.program }} "$@"
{{- end }}

{{/* The interpreter of a program, from its name. */}}
{{- define "gke-a3mega.interpreter" -}}
{{- hasSuffix ".sh" . | ternary "bash" "python3 -u" }}
{{- end }}
