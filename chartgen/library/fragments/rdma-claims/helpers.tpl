{{/* Devices that each machine claims. */}}
{{- define "<%= chart %>.rdmaClaim" -}}
{{- $machine := .Run.machine -}}
deviceClassName: {{ .Values.network.deviceClass | quote }}
allocationMode: ExactCount
count: {{ .Values.network.deviceCount | default $machine.fabric.adapters | int64 }}
{{- end }}
