{{/* Address of the first machine. */}}
{{- define "gke-a3high.rendezvous" -}}
{{- printf "%s-0.%s" (include "gke-a3high.run" .) (include "gke-a3high.run" .) }}
{{- end }}

{{/* What the run is. `suspend` is Kueue's to set. */}}
{{- define "gke-a3high.kindSpec" -}}
{{- include "gke-a3high.job" . }}

{{- end }}
