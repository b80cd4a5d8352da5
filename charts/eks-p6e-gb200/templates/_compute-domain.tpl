{{/* Whether the machine type has NVLink to other machines: "true" or nothing. */}}
{{- define "eks-p6e-gb200.computeDomain" -}}
{{- with (include "eks-p6e-gb200.machine" . | fromJson).fabric }}{{ .computeDomain | default "" }}{{ end }}
{{- end }}
