{{- if and .Values.network.hostNetwork (ne .Release.Namespace "training") }}
{{- $_ := set $check "problems" (append $check.problems "hostNetwork is only for namespace training") }}
{{- end }}
