{{/* Address of the first machine. */}}
{{- define "onprem-p8000.rendezvous" -}}
{{- printf "%s-0.%s" (include "onprem-p8000.run" .) (include "onprem-p8000.run" .) }}
{{- end }}

{{/* What the run is. `suspend` is Kueue's to set. */}}
{{- define "onprem-p8000.kindSpec" -}}
{{- include "onprem-p8000.job" . }}

{{- end }}
