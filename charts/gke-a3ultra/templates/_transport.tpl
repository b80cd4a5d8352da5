{{/* Adapters of a machine that rdma-gib promises with these values. */}}
{{- define "gke-a3ultra.transport.rdma-gib" -}}
1
{{- end }}

{{/* What NCCL must report before a run of several machines trains, as YAML; nothing when nothing is promised. */}}
{{- define "gke-a3ultra.transport" -}}
{{- if and .Run.gpu (gt .Run.nodes 1) (ne .Values.network.transportCheck "off") }}
{{- with include "gke-a3ultra.transport.rdma-gib" . | trim | int64 }}
promise: "gIB"
reports: ["Using network gIB"]
links: []
device: ""
devices: {{ . }}
why: "Failed to open libibverbs|NET/gIB.*([Ff]ail|[Ee]rror|[Mm]ismatch|[Uu]nable)"
refutedBy: ""
check: {{ $.Values.network.transportCheck | default "fail" }}
{{- end }}
{{- end }}
{{- end }}
