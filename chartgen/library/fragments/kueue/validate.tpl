{{- if and .Values.topology.mode (not .Values.queue.name) }}
{{- $_ := set $check "problems" (append $check.problems "topology.mode: Kueue places the pods, so it needs queue.name") }}
{{- end }}
{{- if and .Values.queue.flexStart (not (and .Values.queue.name .Values.run.deadlineSeconds)) }}
{{- $_ := set $check "problems" (append $check.problems "queue.flexStart: needs queue.name and run.deadlineSeconds, the time that the machines are asked for") }}
{{- end }}
{{- if and .Values.topology.sliceSize (mod .Values.nodes (.Values.topology.sliceSize | default 1)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "topology.sliceSize: %d does not divide %d nodes" (int64 .Values.topology.sliceSize) (int64 .Values.nodes))) }}
{{- end }}
