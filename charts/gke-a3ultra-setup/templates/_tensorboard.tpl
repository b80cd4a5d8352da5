{{/* Metadata of TensorBoard's objects. The name leaves room for what is behind the release's, within 63 characters. */}}
{{- define "gke-a3ultra-setup.tensorboardMetadata" -}}
metadata:
  name: {{ .Release.Name | trunc 51 | trimSuffix "-" }}-tensorboard
  labels:
    {{- include "gke-a3ultra-setup.labels" . | nindent 4 }}
    app.kubernetes.io/component: tensorboard
{{- end }}
