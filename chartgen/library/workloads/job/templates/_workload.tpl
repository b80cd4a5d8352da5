{{/* Address of the first machine. */}}
{{- define "<%= chart %>.rendezvous" -}}
{{- printf "%s-0.%s" .Run.name .Run.name }}
{{- end }}

{{/* What the run is. `suspend` is Kueue's to set. */}}
{{- define "<%= chart %>.kindSpec" -}}
<%= job(0) %>
<%= slot("workloadSpec.yaml", 0) %>
{{- end }}
