{{/* Whether the machine type has NVLink to other machines: "true" or nothing. */}}
{{- define "oke-h100.computeDomain" -}}
{{- with .Run.machine.fabric }}{{ .computeDomain | default "" }}{{ end }}
{{- end }}
