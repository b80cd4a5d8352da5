{{/* Adapters of a machine that gpudirect-tcpx promises with these values. */}}
{{- define "gke-a3high.transport.gpudirect-tcpx" -}}
1
{{- end }}

{{/* What NCCL must report before a run of several machines trains, as YAML; nothing when nothing is promised. */}}
{{- define "gke-a3high.transport" -}}
{{- if and .Run.gpu (gt .Run.nodes 1) (ne .Values.network.transportCheck "off") }}
{{- with include "gke-a3high.transport.gpudirect-tcpx" . | trim | int64 }}
promise: "TCPX (GPUDirectTCPX)"
reports: ["Using network GPUDirectTCPX"]
links: []
device: ""
devices: {{ . }}
why: "NET/GPUDirectTCPX.*([Ff]ail|[Ee]rror)"
refutedBy: ""
check: {{ $.Values.network.transportCheck | default "fail" }}
{{- end }}
{{- end }}
{{- end }}
