{{/* Flattens a native configuration into {path: Hydra literal}, as YAML. Takes (list tree prefix). */}}
{{- define "nebius.hydra" }}
{{- $prefix := index . 1 }}
{{- range $key, $value := index . 0 }}
{{- if and (kindIs "map" $value) $value }}
{{- include "nebius.hydra" (list $value (printf "%s%s." $prefix $key)) }}
{{- else }}
{{ printf "%s%s" $prefix $key | toJson }}: {{ include "nebius.hydraValue" $value | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{/*
A value in Hydra's override grammar. Text is in single quotes; a backslash is doubled where a quote or the end follows,
and a quote gets one, so that any text arrives unchanged.
*/}}
{{- define "nebius.hydraValue" -}}
{{- if kindIs "string" . -}}
'{{ regexReplaceAll `(\\+)$` (regexReplaceAll `(\\*)'` . "${1}${1}\\'") "${1}${1}" }}'
{{- else if kindIs "slice" . -}}
[{{ range $i, $item := . }}{{ if $i }},{{ end }}{{ include "nebius.hydraValue" $item }}{{ end }}]
{{- else if kindIs "map" . -}}
{ {{- range $i, $key := keys . | sortAlpha }}{{ if $i }},{{ end }}{{ $key }}:{{ include "nebius.hydraValue" (get $ $key) }}{{ end -}} }
{{- else -}}
{{ toJson . }}
{{- end }}
{{- end }}
