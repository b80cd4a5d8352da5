{{/* Metadata of the PodMonitors, from (list root name). The name leaves room for what is behind the release's. */}}
{{- define "coreweave-setup.podMonitorMetadata" -}}
{{- $root := index . 0 -}}
metadata:
  name: {{ $root.Release.Name | trunc 57 | trimSuffix "-" }}-{{ index . 1 }}
  labels:
    {{- include "coreweave-setup.labels" $root | nindent 4 }}
    {{- with $root.Values.setup.monitoring.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
