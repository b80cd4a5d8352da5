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
{{- with include (printf "<%= chart %>.launcher.%s.beforeLaunch" .Values.launcher) . | trim }}
{{ . }}
{{- end }}
exec {{ include "<%= chart %>.interpreter" .Run.launcher.program }} "$@"
{{- end }}

{{/* The beginning of both: as on the machines, without what their devices need. */}}
{{- define "<%= chart %>.rayScript" -}}
{{- $variables := list }}
{{- range .Run.env | fromYamlArray }}{{ $variables = append $variables .name }}{{ end -}}
{{ .Files.Get "files/start.sh" | replace "RELEASE_VARIABLES" (join " " $variables) | trim }}
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
{{- end }}
