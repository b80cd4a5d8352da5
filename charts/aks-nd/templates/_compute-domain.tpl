{{/* Whether the machine type has NVLink to other machines: "true" or nothing. */}}
{{- define "aks-nd.computeDomain" -}}
{{- with .Run.machine.fabric }}{{ .computeDomain | default "" }}{{ end }}
{{- end }}
