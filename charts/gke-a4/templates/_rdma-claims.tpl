{{/* Devices that each machine claims. */}}
{{- define "gke-a4.rdmaClaim" -}}
{{- $machine := .Run.machine -}}
deviceClassName: {{ .Values.network.deviceClass | quote }}
allocationMode: ExactCount
count: {{ .Values.network.deviceCount | default $machine.fabric.adapters | int64 }}
{{- end }}
