{{/* Metadata of the PodMonitors, from (list root name). The name leaves room for what is behind the release's. */}}
{{- define "gke-a3mega-setup.podMonitorMetadata" -}}
{{- $root := index . 0 -}}
metadata:
  name: {{ $root.Release.Name | trunc 57 | trimSuffix "-" }}-{{ index . 1 }}
  labels:
    {{- include "gke-a3mega-setup.labels" $root | nindent 4 }}
    {{- with $root.Values.setup.monitoring.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
