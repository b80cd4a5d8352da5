{{/* Adapters of a machine that roce-oke promises with these values. */}}
{{- define "oke-h100.transport.roce-oke" -}}
{{ include "oke-h100.roceDevices" . }}
{{- end }}

{{/* What NCCL must report before a run of several machines trains, as YAML; nothing when nothing is promised. */}}
{{- define "oke-h100.transport" -}}
{{- if and .Run.gpu (gt .Run.nodes 1) (ne .Values.network.transportCheck "off") }}
{{- with include "oke-h100.transport.roce-oke" . | trim | int64 }}
promise: "RoCE"
reports: ["Using network IB"]
links: ["RoCE"]
device: ""
devices: {{ . }}
why: "NET/IB : No device found"
refutedBy: ""
check: {{ $.Values.network.transportCheck | default "fail" }}
{{- end }}
{{- end }}
{{- end }}
