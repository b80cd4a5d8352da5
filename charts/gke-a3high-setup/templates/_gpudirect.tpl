{{/* Networks of the pods, and how the names of their VPC networks end. */}}
{{- define "gke-a3high-setup.networkNames" -}}
{{- range $i, $name := .Values.network.subnetworks }}
- {name: {{ $name | quote }}, mode: NetDevice, vpc: {{ $i | quote }}, subnet: {{ $i | quote }}}
{{- end }}
{{- end }}
