{{/* Whether the machine type has NVLink to other machines: "true" or nothing. */}}
{{- define "gke-a4x.computeDomain" -}}
{{- with .Run.machine.fabric }}{{ .computeDomain | default "" }}{{ end }}
{{- end }}
