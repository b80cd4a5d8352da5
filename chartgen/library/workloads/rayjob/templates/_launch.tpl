{{/* The end of a machine's start script: it becomes a node of the Ray cluster. */}}
{{- define "<%= chart %>.launch" }}
{{ .Files.Get "files/ray.sh" | trim }}
{{- end }}

{{/* Script of the head, which has no GPU and none of the machines' devices. */}}
{{- define "<%= chart %>.headScript" -}}
{{ include "<%= chart %>.rayScript" . }}
{{ .Files.Get "files/head.sh" | trim }}
{{ .Files.Get "files/ray.sh" | trim }}
{{- end }}

{{/* Script of the driver: the program's own process, on the head. */}}
{{- define "<%= chart %>.driverScript" -}}
{{ include "<%= chart %>.rayScript" . }}
{{ .Files.Get "files/driver.sh" | trim }}
<% for launcher in target.launchers if "beforeLaunch.sh" in parts(launcher) and launcher.processes == "ray" %>
{{- if eq .Values.launcher "<%= launcher.name %>" }}
{{- with <%= reading(launcher, "beforeLaunch.sh") %> | trim }}
{{ . }}
{{- end }}
{{- end }}
<% endfor %>
exec {{ include "<%= chart %>.interpreter" (include "<%= chart %>.launcher" . | fromJson).program }} "$@"
{{- end }}

{{/* The beginning of both: as on the machines, without what their devices need. */}}
{{- define "<%= chart %>.rayScript" -}}
{{- $variables := include "<%= chart %>.env" . | fromYamlArray | include "<%= chart %>.names" -}}
{{ .Files.Get "files/start.sh" | replace "RELEASE_VARIABLES" $variables | trim }}
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
{{- end }}
