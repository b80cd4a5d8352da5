{{- $several := gt (include "<%= chart %>.nodes" . | int64) 1 }}
{{- if and $several (eq .Values.network.interface "none") }}
{{- $_ := set $check "problems" (append $check.problems (printf "network.interface: with none, %d machines would use TCP; use infiniband, or tcp to say that this is meant" (include "<%= chart %>.nodes" . | int64))) }}
{{- end }}
