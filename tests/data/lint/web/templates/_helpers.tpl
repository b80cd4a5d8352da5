{{- define "web.name" -}}{{ .Release.Name }}-web{{- end }}
{{- define "web.selector" -}}
app.kubernetes.io/name: web
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "web.labels" -}}
{{ include "web.selector" . }}
helm.sh/chart: web-{{ .Chart.Version }}
{{- end }}
