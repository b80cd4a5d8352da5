{{/* Adapters of a machine that efa promises with these values. */}}
{{- define "eks-p5.transport.efa" -}}
{{ include "eks-p5.efaAdapters" . }}
{{- end }}

{{/* What NCCL must report before a run of several machines trains, as YAML; nothing when nothing is promised. */}}
{{- define "eks-p5.transport" -}}
{{- if and .Run.gpu (gt .Run.nodes 1) (ne .Values.network.transportCheck "off") }}
{{- with include "eks-p5.transport.efa" . | trim | int64 }}
promise: "EFA"
reports: ["Using network (AWS )?Libfabric", "NET/OFI Selected [Pp]rovider is efa\\b"]
links: []
device: "NET/OFI Selected [Pp]rovider is efa\\b.*\\(found (?P<count>\\d+) nics\\)"
devices: {{ . }}
why: "NET/OFI (Selected [Pp]rovider is (?!efa)|.*([Ff]ail|[Uu]nable|[Nn]o eligible))"
refutedBy: "NET/OFI Selected [Pp]rovider is (?!efa\\b)"
check: {{ $.Values.network.transportCheck | default "fail" }}
{{- end }}
{{- end }}
{{- end }}
