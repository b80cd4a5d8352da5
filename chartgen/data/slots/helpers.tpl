{{/* Adapters of a machine. */}}
{{- define "<%= chart %>.adapters" -}}
{{- .Values.network.adapters | default 8 }}
{{- end }}
