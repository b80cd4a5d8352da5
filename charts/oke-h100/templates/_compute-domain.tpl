{{/* Whether the machine type has NVLink to other machines: "true" or nothing. */}}
{{- define "oke-h100.computeDomain" -}}
{{- with (get (include "oke-h100.machines" . | fromYaml) .Values.machineType).fabric }}{{ .computeDomain | default "" }}{{ end }}
{{- end }}
