{{/*
Start script of every machine: of files/, what this run needs. Values reach it as variables and arguments only.
*/}}
{{- define "<%= chart %>.start" -}}
{{- $variables := list }}
{{- range .Run.env | fromYamlArray }}{{ $variables = append $variables .name }}{{ end -}}
{{ .Files.Get "files/start.sh" | replace "RELEASE_VARIABLES" (join " " $variables) | trim }}
{{- if .Run.gpu }}
<% if "attempt" in defined %>
{{- if and .Run.mustProgress (include "<%= chart %>.attempt" .) (not .Values.run.spares) }}

{{ .Files.Get "files/progress.sh" | trim }}
{{ end }}
<% endif %>
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
<% if kind.starts == "gpu" %>
{{- if .Run.watched }}

# A machine that ends before its program starts leaves a black box too.
trap 'python3 /etc/chartgen/watch.py --ended "$?" || true' EXIT
{{- end }}
{{- with .Run.examination }}

# A machine that is not fit ends before others wait for it.
{{ include "<%= chart %>.examine" $ }}
{{- end }}
<% endif %>
{{- if .Run.staged }}

{{ .Files.Get "files/stage.sh" | trim }}
{{- end }}
{{- end }}
<%= slot("beforeLaunch.sh", 0) %>
<% if kind.starts == "ray" %>
{{- if ne .Run.launcher.processes "ray" }}
<% endif %>
{{- with include (printf "<%= chart %>.launcher.%s.beforeLaunch" .Values.launcher) . | trim }}
{{ . }}
{{- end }}
<% if kind.starts == "ray" %>
{{- end }}
<% endif %>
<% if kind.starts == "gpu" %>
{{- if .Run.exporter }}

{{ .Files.Get "files/exporter.sh" | trim }}
{{- end }}
<% endif %>
<% set others = target.launchers | map(attribute="processes") | reject("equalto", kind.starts) | list %>
<% if others %>
{{- if eq .Run.launcher.processes "<%= kind.starts %>" }}
<% endif %>
{{ include "<%= chart %>.launch" . | trim }}
<% if "one" in others %>
{{- else if eq .Run.launcher.processes "one" }}
# exec: the program gets Kubernetes' SIGTERM, and its exit code is the container's.
exec {{ include "<%= chart %>.interpreter" .Run.launcher.program }} "$@"
<% endif %>
<% if "workers" in others %>
{{- else }}

{{ .Files.Get "files/workers.sh" | replace "INTERPRETER" (include "<%= chart %>.interpreter" .Run.launcher.program) | trim }}
<% endif %>
<% if others %>
{{- end }}
<% endif %>
{{- end }}

<% if kind.starts == "gpu" %>
{{- define "<%= chart %>.examine" -}}
python3 -u /etc/chartgen/examine.py "$RUN_DIRECTORY/machines" {{ .Run.examination }} 2>&1 | tee -a "$CHARTGEN_PRELUDE"
{{- end }}

{{/* The end of the script of every process of a GPU program: it becomes the program. */}}
{{- define "<%= chart %>.rankProgram" }}
<% if "beforeProcess" in defined %>
{{- include "<%= chart %>.beforeProcess" . }}
<% endif %>
<% if kind.name in ("job", "jobset", "pytorchjob") %>
{{- if and .Run.examination <%= ".Run.restarts" if kind.name == "pytorchjob" else ".Values.run.spares" %> }}

{{ .Files.Get "files/examined.sh" | replace "EXAMINE" (include "<%= chart %>.examine" .) | trim }}
{{- end }}
<% endif %>
<% if slot("beforeRank.sh", 0) %>
<%= slot("beforeRank.sh", 0) %>
<% endif %>
<% if "beforeRank" in used_parts %>
{{- with include (printf "<%= chart %>.launcher.%s.beforeRank" .Values.launcher) . | trim }}
{{ . }}
{{- end }}
<% endif %>
{{- $watch := "" }}
{{- if or .Run.watched .Run.exporter }}
{{- $watch = "python3 -u /etc/chartgen/watch.py \"${CHARTGEN_PROCESSES:-/run/chartgen/ranks}\" " }}
{{- end }}
exec {{ $watch }}{{ include "<%= chart %>.interpreter" .Run.launcher.program }} "$@"
{{- end }}

<% endif %>
{{/* The interpreter of a program, from its name. */}}
{{- define "<%= chart %>.interpreter" -}}
{{- hasSuffix ".sh" . | ternary "bash" "python3 -u" }}
{{- end }}
