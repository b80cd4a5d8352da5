{{/* Whether the machine type has NVLink to other machines: "true" or nothing. */}}
{{- define "gke-a4x.computeDomain" -}}
{{- with (include "gke-a4x.machine" . | fromJson).fabric }}{{ .computeDomain | default "" }}{{ end }}
{{- end }}
