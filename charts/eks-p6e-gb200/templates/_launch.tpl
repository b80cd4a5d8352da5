{{/* The end of a machine's start script: torchrun starts one process for each GPU. */}}
{{- define "eks-p6e-gb200.launch" }}
{{- include "eks-p6e-gb200.beforeRendezvous" . }}
{{ .Files.Get "files/torchrun.sh" | replace "RENDEZVOUS" (include "eks-p6e-gb200.rendezvousFlags" . | nindent 4 | trim) | trim }}
{{- if .Run.transport }}

{{ .Files.Get "files/transport.sh" | trim }}
{{- end }}

meet "$MASTER_PORT"
{{- with include (printf "eks-p6e-gb200.launcher.%s.launch" .Values.launcher) . | trim }}
{{ . }}
{{- end }}
{{- if .Values.profile.enabled }}
{{ .Files.Get "files/profile.sh" | replace "RANKS" (join " " .Values.profile.ranks) | trim }}
{{- end }}
{{- if or .Run.watched .Run.restarts }}
code=0
trap - EXIT
run "${launch[@]}" --no-python bash /etc/chartgen/rank.sh "$@" || code=$?
# torchrun reports 1, whatever the exit code of its processes.
if ((code)) && [[ -s $CHARTGEN_PROCESSES.code ]]; then code=$(<"$CHARTGEN_PROCESSES.code"); fi
exit "$code"
{{- else }}
run "${launch[@]}" --no-python bash /etc/chartgen/rank.sh "$@"
{{- end }}
{{- end }}

{{/* Script of every process of a GPU program: it knows its rank, and becomes the program. */}}
{{- define "eks-p6e-gb200.rank" -}}
{{ .Files.Get "files/rank.sh" | trim }}
{{- include "eks-p6e-gb200.rankProgram" . }}
{{- end }}
