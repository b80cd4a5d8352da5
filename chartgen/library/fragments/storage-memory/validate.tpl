{{- if and (eq $launcher.task "train") .Values.checkpoint.enabled (hasPrefix "memory://" .Values.storage.outputs.from) }}
{{- $_ := set $check "problems" (append $check.problems "storage.outputs.from: checkpoints in memory:// are lost with the pod; use storage that all machines share, or checkpoint.enabled false") }}
{{- end }}
