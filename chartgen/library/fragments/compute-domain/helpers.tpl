{{/* Whether the machine type has NVLink to other machines: "true" or nothing. */}}
{{- define "<%= chart %>.computeDomain" -}}
{{- with (get (include "<%= chart %>.machines" . | fromYaml) .Values.machineType).fabric }}{{ .computeDomain | default "" }}{{ end }}
{{- end }}
