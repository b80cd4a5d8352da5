{{/* The check of the network needs numbered machines, which Ray's are not: nothing is promised or checked. */}}
{{- define "<%= chart %>.transport" -}}{{- end }}
