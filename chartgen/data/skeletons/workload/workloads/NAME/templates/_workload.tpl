{{/* Address of the first machine, where the processes meet. */}}
{{- define "<%= chart %>.rendezvous" -}}
{{- printf "%s-0.%s" .Run.name .Run.name }}
{{- end }}

{{/* The spec of the object. A tag with job(0) is that of an Indexed Job, indented by 0. */}}
{{- define "<%= chart %>.kindSpec" -}}
replicas: {{ .Run.nodes }}
template:
  {{- include "<%= chart %>.pod" . | nindent 2 }}
<%= slot("workloadSpec.yaml", 0) %>
{{- end }}
