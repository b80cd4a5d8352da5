{{/* Adapters of a machine that infiniband promises with these values. */}}
{{- define "coreweave.transport.infiniband" -}}
{{ include "coreweave.infinibandDevices" . }}
{{- end }}

{{/* What NCCL must report before a run of several machines trains, as YAML; nothing when nothing is promised. */}}
{{- define "coreweave.transport" -}}
{{- if and .Run.gpu (gt .Run.nodes 1) (ne .Values.network.transportCheck "off") }}
{{- with include "coreweave.transport.infiniband" . | trim | int64 }}
promise: "InfiniBand"
reports: ["Using network IB"]
links: ["IB", "RoCE"]
device: ""
devices: {{ . }}
why: "NET/IB : No device found"
refutedBy: ""
check: {{ $.Values.network.transportCheck | default "fail" }}
{{- end }}
{{- end }}
{{- end }}
