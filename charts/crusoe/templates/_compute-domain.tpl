{{/* Whether the machine type has NVLink to other machines: "true" or nothing. */}}
{{- define "crusoe.computeDomain" -}}
{{- with .Run.machine.fabric }}{{ .computeDomain | default "" }}{{ end }}
{{- end }}
