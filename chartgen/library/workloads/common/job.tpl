{{/* Its spec: numbered pods, and failed as soon as one of them fails. */}}
{{- define "<%= chart %>.job" -}}
<%= job(0, gpus=false) %>
{{- end }}
