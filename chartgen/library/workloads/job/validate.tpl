{{- if .Values.run.maxRestarts }}
{{- $_ := set $check "problems" (append $check.problems "run.maxRestarts: a Job cannot restart as a whole; use a chart of workload kind jobset, or 0") }}
{{- end }}
{{- if .Values.run.ttlSecondsAfterFinished }}
{{- $_ := set $check "problems" (append $check.problems "run.ttlSecondsAfterFinished: a finished Job that is gone would be started again by the next upgrade; leave it null") }}
{{- end }}
