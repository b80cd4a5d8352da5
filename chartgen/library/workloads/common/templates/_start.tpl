{{/*
Start script of every machine: of files/, what this run needs. Values reach it as variables and arguments only.
*/}}
{{- define "<%= chart %>.start" -}}
{{- $launcher := include "<%= chart %>.launcher" . | fromJson -}}
{{- $variables := include "<%= chart %>.env" . | fromYamlArray | include "<%= chart %>.names" -}}
{{ .Files.Get "files/start.sh" | replace "RELEASE_VARIABLES" $variables | trim }}
{{- if include "<%= chart %>.gpu" . }}
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
{{- if include "<%= chart %>.staged" . }}

{{ .Files.Get "files/stage.sh" | trim }}
{{- end }}
{{- end }}
<%= slot("beforeLaunch.sh", 0) %>
<% for launcher in target.launchers if "beforeLaunch.sh" in parts(launcher) and launcher.processes != "ray" %>
{{- if eq .Values.launcher "<%= launcher.name %>" }}
{{- with <%= reading(launcher, "beforeLaunch.sh") %> | trim }}
{{ . }}
{{- end }}
{{- end }}
<% endfor %>
<% if kind.starts == "gpu" %>
{{- if include "<%= chart %>.exporter" . }}

{{ .Files.Get "files/exporter.sh" | trim }}
{{- end }}
<% endif %>
{{- if eq $launcher.processes "<%= kind.starts %>" }}
{{ include "<%= chart %>.launch" . | trim }}
{{- else if eq $launcher.processes "one" }}
# exec: the program gets Kubernetes' SIGTERM, and its exit code is the container's.
exec {{ include "<%= chart %>.interpreter" $launcher.program }} "$@"
{{- else }}

{{ .Files.Get "files/workers.sh" | replace "INTERPRETER" (include "<%= chart %>.interpreter" $launcher.program) | trim }}
{{- end }}
{{- end }}

<% if kind.starts == "gpu" %>
{{/* The end of the script of every process of a GPU program: it becomes the program. */}}
{{- define "<%= chart %>.rankProgram" }}
<% if slot("beforeRank.sh", 0) %>
<%= slot("beforeRank.sh", 0) %>
<% endif %>
<% for launcher in target.launchers if "beforeRank.sh" in parts(launcher) %>
{{- if eq .Values.launcher "<%= launcher.name %>" }}
{{- with <%= reading(launcher, "beforeRank.sh") %> | trim }}
{{ . }}
{{- end }}
{{- end }}
<% endfor %>
{{- $watch := "" }}
{{- if or (include "<%= chart %>.watched" .) (include "<%= chart %>.exporter" .) }}
{{- $watch = "python3 -u /etc/chartgen/watch.py \"${CHARTGEN_PROCESSES:-/run/chartgen/ranks}\" " }}
{{- end }}
exec {{ $watch }}{{ include "<%= chart %>.interpreter" (include "<%= chart %>.launcher" . | fromJson).program }} "$@"
{{- end }}

<% endif %>
{{/* Whether a run that hangs is ended: "true" or nothing. */}}
{{- define "<%= chart %>.watched" -}}
{{- if and .Values.run.hangMinutes (eq (include "<%= chart %>.launcher" . | fromJson).task "train") }}true{{ end }}
{{- end }}

{{/* The interpreter of a program, from its name. */}}
{{- define "<%= chart %>.interpreter" -}}
{{- hasSuffix ".sh" . | ternary "bash" "python3 -u" }}
{{- end }}

{{/* Names of variables, as words. */}}
{{- define "<%= chart %>.names" -}}
{{- range $i, $entry := . }}{{ if $i }} {{ end }}{{ $entry.name }}{{ end }}
{{- end }}
