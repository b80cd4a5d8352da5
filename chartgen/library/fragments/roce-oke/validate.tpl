{{- if and (eq .Values.network.mode "sriov") (not (int (include "<%= chart %>.roceFunctions" .))) }}
{{- $_ := set $check "problems" (append $check.problems (printf "network.mode: %s has no virtual functions; use host" .Values.machineType)) }}
{{- end }}
