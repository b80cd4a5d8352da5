{{- if .Values.storage.data.readOnly }}
{{- $_ := set $check "problems" (append $check.problems "storage.data.readOnly: mlperf-preprocess writes there; remove it for this release") }}
{{- end }}
