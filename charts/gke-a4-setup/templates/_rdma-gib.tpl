{{/* Networks of the pods, and how Google's Cluster Toolkit names their VPC networks behind the deployment's name. */}}
{{- define "gke-a4-setup.networkNames" -}}
{{- if eq .Values.network.mode "annotation" }}
{{- with .Values.network.gvnic }}
- {name: {{ . | quote }}, mode: NetDevice, vpc: -net-1, subnet: -sub-1}
{{- end }}
{{- range $i, $name := .Values.network.subnetworks }}
- {name: {{ $name | quote }}, mode: RDMA, vpc: -rdma-net, subnet: -rdma-sub-{{ $i }}}
{{- end }}
{{- end }}
{{- end }}
