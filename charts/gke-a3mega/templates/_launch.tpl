{{/* The end of a machine's start script: torchrun starts one process for each GPU. */}}
{{- define "gke-a3mega.launch" }}
{{ .Files.Get "files/torchrun.sh" | replace "RENDEZVOUS" (include "gke-a3mega.rendezvousFlags" . | nindent 4 | trim) | trim }}
{{- with .Values.run.spares }}
{{- $final := include "gke-a3mega.finalExits" $ | fromJsonArray | join " " }}
{{- $spares := $.Files.Get "files/spares.sh" | replace "FINAL" $final | replace "PODS" (toString $.Run.pods) }}
{{- $segment := "" }}
{{- if and ($.Run.machine.fabric | default dict).computeDomain ($.Values.topology | default dict).sliceSize }}
{{- $segment = int64 $.Values.topology.sliceSize | printf " --ft-segment=%d" }}
{{- end }}
{{- $spares = $spares | replace " SEGMENT" $segment }}

{{ $spares | replace "RESTARTS" (min 3 $.Run.restarts | add . | toString) | trim }}
{{- end }}
{{- if .Run.transport }}

{{ .Files.Get "files/transport.sh" | trim }}
{{- end }}

meet "$MASTER_PORT"
{{- with include (printf "gke-a3mega.launcher.%s.launch" .Values.launcher) . | trim }}
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
{{- if .Values.run.spares }}
((code)) || leave
{{- end }}
exit "$code"
{{- else }}
run "${launch[@]}" --no-python bash /etc/chartgen/rank.sh "$@"
{{- if .Values.run.spares }}
leave
{{- end }}
{{- end }}
{{- end }}

{{/* Script of every process of a GPU program: it knows its rank, and becomes the program. */}}
{{- define "gke-a3mega.rank" -}}
{{ .Files.Get "files/rank.sh" | trim }}
{{- include "gke-a3mega.rankProgram" . }}
{{- end }}
