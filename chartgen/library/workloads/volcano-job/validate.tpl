{{- if .Values.run.ttlSecondsAfterFinished }}
{{- $_ := set $check "problems" (append $check.problems "run.ttlSecondsAfterFinished: a finished Job that is gone would be started again by the next upgrade; leave it null (its pods hold no GPUs)") }}
{{- end }}
{{- if and (ne $launcher.task "data") (ne $launcher.processes "gpu") }}
{{- $_ := set $check "problems" (append $check.problems (printf "launcher: %s does not start one process for each GPU, which is what mpirun does; use a chart of another workload kind" .Values.launcher)) }}
{{- end }}
{{- if has (int .Values.mpi.sshPort) (list 22 6002) }}
{{- $_ := set $check "problems" (append $check.problems (printf "mpi.sshPort: %d is taken by the %s; use another one" (int .Values.mpi.sshPort) (eq (int .Values.mpi.sshPort) 22 | ternary "machine's own ssh server" "rendezvous of the ranks"))) }}
{{- end }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" .Release.Name) }}
{{- $_ := set $check "problems" (append $check.problems (printf "release %s: Volcano makes a Service of this name, which must begin with a letter and hold no dots" .Release.Name)) }}
{{- end }}
