{{/* Adapters of each machine of the run: those asked for, else with several machines the share of the GPUs in use. */}}
{{- define "eks-p6e-gb200.efaAdapters" -}}
{{- $machine := include "eks-p6e-gb200.machine" . | fromJson }}
{{- $share := div (mul (get $machine.capacity "vpc.amazonaws.com/efa") (include "eks-p6e-gb200.gpusPerNode" .)) $machine.gpus | max 1 }}
{{- $several := gt (include "eks-p6e-gb200.nodes" . | int64) 1 }}
{{- if eq .Values.network.interface "tcp" }}0{{ else }}{{ .Values.network.adapters | default (ternary $share 0 $several) | int64 }}{{ end }}
{{- end }}
