{{/* Whether the machine type has NVLink to other machines: "true" or nothing. */}}
{{- define "crusoe.computeDomain" -}}
{{- with (include "crusoe.machine" . | fromJson).fabric }}{{ .computeDomain | default "" }}{{ end }}
{{- end }}
