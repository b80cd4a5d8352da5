{{/* The queues by name: those of setup.queues, or one of the name that runs use. */}}
{{- define "gke-a4x-setup.queues" -}}
{{- $one := dict .Values.queue.name (dict "nodes" (.Values.setup.quota.nodes | default (add .Values.nodes .Values.run.spares))) }}
{{- .Values.setup.queues | default (.Values.queue.name | empty | ternary dict $one) | toJson }}
{{- end }}

{{/* Their flavors: those of setup.flavors, or one of all machines. */}}
{{- define "gke-a4x-setup.flavors" -}}
{{- .Values.setup.flavors | default (list (dict "name" (.Values.queue.name | default "gke-a4x"))) | toJson }}
{{- end }}
