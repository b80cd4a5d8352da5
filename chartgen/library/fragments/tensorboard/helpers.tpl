{{/* Metadata of TensorBoard's objects. The name leaves room for what is behind the release's, within 63 characters. */}}
{{- define "<%= chart %>.tensorboardMetadata" -}}
metadata:
  name: {{ .Release.Name | trunc 51 | trimSuffix "-" }}-tensorboard
  labels:
    {{- include "<%= chart %>.labels" . | nindent 4 }}
    app.kubernetes.io/component: tensorboard
{{- end }}
