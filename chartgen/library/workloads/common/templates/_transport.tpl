<% for fragment in target.fragments if fragment.contract %>
{{/* Adapters of a machine that <%= fragment.name %> promises with these values. */}}
{{- define "<%= chart %>.transport.<%= fragment.name %>" -}}
<%= devices(fragment) %>
{{- end }}

<% endfor %>
{{/* What NCCL must report before a run of several machines trains, as YAML; nothing when nothing is promised. */}}
{{- define "<%= chart %>.transport" -}}
{{- if and .Run.gpu (gt .Run.nodes 1) (ne .Values.network.transportCheck "off") }}
<% for fragment in target.fragments if fragment.contract %>
{{- with include "<%= chart %>.transport.<%= fragment.name %>" . | trim | int64 }}
promise: <%= fragment.transport | quoted %>
reports: <%= fragment.contract.reports | quoted %>
links: <%= fragment.contract.links | quoted %>
device: <%= fragment.contract.device | quoted %>
devices: {{ . }}
why: <%= fragment.contract.why | quoted %>
refutedBy: <%= fragment.contract.refuted_by | quoted %>
check: {{ $.Values.network.transportCheck | default "fail" }}
{{- end }}
<% endfor %>
{{- end }}
{{- end }}
