{{/* Whether the machine type has NVLink to other machines: "true" or nothing. */}}
{{- define "oke-h100.computeDomain" -}}
{{- with (include "oke-h100.machine" . | fromJson).fabric }}{{ .computeDomain | default "" }}{{ end }}
{{- end }}
