{{/* Devices that each machine claims. */}}
{{- define "<%= chart %>.rdmaClaim" -}}
{{- $machine := include "<%= chart %>.machine" . | fromJson -}}
deviceClassName: {{ .Values.network.deviceClass | quote }}
allocationMode: ExactCount
count: {{ .Values.network.deviceCount | default $machine.fabric.adapters | int64 }}
{{- end }}
