{{/* Whether the machine type has NVLink to other machines: "true" or nothing. */}}
{{- define "eks-p6e-gb200.computeDomain" -}}
{{- with .Run.machine.fabric }}{{ .computeDomain | default "" }}{{ end }}
{{- end }}
