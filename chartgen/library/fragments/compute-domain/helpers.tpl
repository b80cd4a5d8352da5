{{/* Whether the machine type has NVLink to other machines: "true" or nothing. */}}
{{- define "<%= chart %>.computeDomain" -}}
{{- with (include "<%= chart %>.machine" . | fromJson).fabric }}{{ .computeDomain | default "" }}{{ end }}
{{- end }}
