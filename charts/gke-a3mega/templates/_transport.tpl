{{/* Adapters of a machine that gpudirect-tcpxo promises with these values. */}}
{{- define "gke-a3mega.transport.gpudirect-tcpxo" -}}
1
{{- end }}

{{/* What NCCL must report before a run of several machines trains, as YAML; nothing when nothing is promised. */}}
{{- define "gke-a3mega.transport" -}}
{{- if and .Run.gpu (gt .Run.nodes 1) (ne .Values.network.transportCheck "off") }}
{{- with include "gke-a3mega.transport.gpudirect-tcpxo" . | trim | int64 }}
promise: "TCPXO (FasTrak)"
reports: ["Using network FasTrak"]
links: []
device: ""
devices: {{ . }}
why: "NET/FasTrak.*([Ff]ail|[Ee]rror|[Mm]ismatch)"
refutedBy: ""
check: {{ $.Values.network.transportCheck | default "fail" }}
{{- end }}
{{- end }}
{{- end }}
