{{/* Flattens a native configuration into {path: Hydra literal}, as YAML. Takes (list tree prefix). */}}
{{- define "<%= chart %>.hydra" }}
{{- $prefix := index . 1 }}
{{- range $key, $value := index . 0 }}
{{- if and (kindIs "map" $value) $value }}
{{- include "<%= chart %>.hydra" (list $value (printf "%s%s." $prefix $key)) }}
{{- else }}
{{ printf "%s%s" $prefix $key | toJson }}: {{ include "<%= chart %>.hydraValue" $value | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{/* The same as {path: value}, for programs whose options are such paths. Takes (list tree prefix). */}}
{{- define "<%= chart %>.leaves" }}
{{- $prefix := index . 1 }}
{{- range $key, $value := index . 0 }}
{{- if and (kindIs "map" $value) $value }}
{{- include "<%= chart %>.leaves" (list $value (printf "%s%s." $prefix $key)) }}
{{- else }}
{{ printf "%s%s" $prefix $key | toJson }}: {{ toJson $value }}
{{- end }}
{{- end }}
{{- end }}

{{/*
A value in Hydra's override grammar. Text is in single quotes; a backslash is doubled where a quote or the end follows,
and a quote gets one, so that any text arrives unchanged.
*/}}
{{- define "<%= chart %>.hydraValue" -}}
{{- if kindIs "string" . -}}
'{{ regexReplaceAll `(\\+)$` (regexReplaceAll `(\\*)'` . "${1}${1}\\'") "${1}${1}" }}'
{{- else if kindIs "slice" . -}}
[{{ range $i, $item := . }}{{ if $i }},{{ end }}{{ include "<%= chart %>.hydraValue" $item }}{{ end }}]
{{- else if kindIs "map" . -}}
{ {{- range $i, $key := keys . | sortAlpha }}{{ if $i }},{{ end }}{{ $key }}:{{ include "<%= chart %>.hydraValue" (get $ $key) }}{{ end -}} }
{{- else -}}
{{ toJson . }}
{{- end }}
{{- end }}

{{/* A program's configuration as the file NAME.yaml, the user's own over it by its dotted keys. Takes (list root name). */}}
{{- define "<%= chart %>.configFile" -}}
{{- $config := deepCopy (index . 0).Run.config }}
{{- $own := get (index . 0).Values.launchers (index . 1) }}
{{- range $path, $value := include "<%= chart %>.leaves" (list $own.config "") | fromYaml }}
{{- $steps := splitList "." $path }}
{{- $section := $config }}
{{- range initial $steps }}
{{- if not (kindIs "map" (get $section .)) }}{{ $_ := set $section . dict }}{{ end }}
{{- $section = get $section . }}
{{- end }}
{{- $_ := set $section (last $steps) $value }}
{{- end }}
{{ index . 1 }}.yaml: {{ toYaml $config | toJson }}
{{- end }}
