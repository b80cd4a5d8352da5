{{- $units := dict "" 1 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 }}
{{- $least := mul (regexFind "^[0-9]+" $launcher.minBytes | int64) (get $units (regexFind "[A-Za-z]*$" $launcher.minBytes)) }}
{{- $most := mul (regexFind "^[0-9]+" $launcher.maxBytes | int64) (get $units (regexFind "[A-Za-z]*$" $launcher.maxBytes)) }}
{{- if lt $most $least }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.nccl-test.maxBytes: %s is less than minBytes %s" $launcher.maxBytes $launcher.minBytes)) }}
{{- end }}
{{- $world := include "<%= chart %>.worldSize" . | int64 }}
{{- if lt $most (mul 4 $world) }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.nccl-test.maxBytes: %s has no number for each of %d GPUs; use %d or more" $launcher.maxBytes $world (mul 4 $world))) }}
{{- end }}
{{- if eq $world 1 }}
{{- $_ := set $check "problems" (append $check.problems "nodes: one GPU has no other to talk to; use more GPUs or more machines") }}
{{- end }}
{{- if and (eq $launcher.mode "pairs") (lt (int64 .Values.nodes) 3) }}
{{- $_ := set $check "problems" (append $check.problems (printf "nodes: %d machines make no two pairs to compare; use 3 or more, or launchers.nccl-test.mode sweep" (int64 .Values.nodes))) }}
{{- end }}
{{- range $operation := keys ($launcher.minBusbw | default dict) | sortAlpha }}
{{- if or (eq $launcher.mode "pairs") (not (has $operation $launcher.operations)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.nccl-test.minBusbw: %s is not measured in a sweep of this run; remove it, or change mode or operations" $operation)) }}
{{- end }}
{{- end }}
{{- with $launcher.binary }}
{{- $measures := regexReplaceAll "_perf(_mpi)?$" (base .) "" }}
<% if workload != "volcano-job" %>
{{- $_ := set $check "problems" (append $check.problems "launchers.nccl-test.binary: needs mpirun, which does not start the runs of this chart; leave it empty, as PyTorch measures the same") }}
<% endif %>
{{- if eq $launcher.mode "pairs" }}
{{- $_ := set $check "problems" (append $check.problems "launchers.nccl-test.binary: measures all GPUs together; leave it empty for mode pairs") }}
{{- end }}
{{- if ne (join "," $launcher.operations) $measures }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.nccl-test.operations: %s measures nothing else than %s; use [%s]" $launcher.binary $measures $measures)) }}
{{- end }}
{{- end }}
