{{/* Whether the machine type has NVLink to other machines: "true" or nothing. */}}
{{- define "aks-nd.computeDomain" -}}
{{- with (include "aks-nd.machine" . | fromJson).fabric }}{{ .computeDomain | default "" }}{{ end }}
{{- end }}
