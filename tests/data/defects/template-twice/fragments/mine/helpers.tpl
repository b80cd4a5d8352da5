{{/* Name of the run. */}}
{{- define "<%= chart %>.run" -}}
mine
{{- end }}
