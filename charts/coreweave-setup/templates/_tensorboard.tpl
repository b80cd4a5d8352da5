{{/* Metadata of TensorBoard's objects. The name leaves room for what is behind the release's, within 63 characters. */}}
{{- define "coreweave-setup.tensorboardMetadata" -}}
metadata:
  name: {{ .Release.Name | trunc 51 | trimSuffix "-" }}-tensorboard
  labels:
    {{- include "coreweave-setup.labels" . | nindent 4 }}
    app.kubernetes.io/component: tensorboard
{{- end }}
