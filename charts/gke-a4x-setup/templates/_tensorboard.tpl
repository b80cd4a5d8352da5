{{/* Metadata of TensorBoard's objects. The name leaves room for what is behind the release's, within 63 characters. */}}
{{- define "gke-a4x-setup.tensorboardMetadata" -}}
metadata:
  name: {{ .Release.Name | trunc 51 | trimSuffix "-" }}-tensorboard
  labels:
    {{- include "gke-a4x-setup.labels" . | nindent 4 }}
    app.kubernetes.io/component: tensorboard
{{- end }}
