{{/* Flattens a native configuration into {path: Hydra literal}, as YAML. Takes (list tree prefix). */}}
{{- define "oke-h100.hydra" }}
{{- $prefix := index . 1 }}
{{- range $key, $value := index . 0 }}
{{- if and (kindIs "map" $value) $value }}
{{- include "oke-h100.hydra" (list $value (printf "%s%s." $prefix $key)) }}
{{- else }}
{{ printf "%s%s" $prefix $key | toJson }}: {{ include "oke-h100.hydraValue" $value | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{/*
A value in Hydra's override grammar. Text is in single quotes; a backslash is doubled where a quote or the end follows,
and a quote gets one, so that any text arrives unchanged.
*/}}
{{- define "oke-h100.hydraValue" -}}
{{- if kindIs "string" . -}}
'{{ regexReplaceAll `(\\+)$` (regexReplaceAll `(\\*)'` . "${1}${1}\\'") "${1}${1}" }}'
{{- else if kindIs "slice" . -}}
[{{ range $i, $item := . }}{{ if $i }},{{ end }}{{ include "oke-h100.hydraValue" $item }}{{ end }}]
{{- else if kindIs "map" . -}}
{ {{- range $i, $key := keys . | sortAlpha }}{{ if $i }},{{ end }}{{ $key }}:{{ include "oke-h100.hydraValue" (get $ $key) }}{{ end -}} }
{{- else -}}
{{ toJson . }}
{{- end }}
{{- end }}
