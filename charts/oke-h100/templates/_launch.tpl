{{/*
The end of a machine's start script: a ssh server, through which mpirun starts the processes later. Their
variables and arguments wait in a file that only root reads.
*/}}
{{- define "oke-h100.launch" }}
{{ .Files.Get "files/sshd.sh" | replace "SSH_PORT" (.Values.mpi.sshPort | int64 | toString) | trim }}
{{- end }}

{{/* Script of every process: it knows its rank, and becomes the program. */}}
{{- define "oke-h100.rank" -}}
{{ .Files.Get "files/rank.sh" | trim }}
{{- if .Values.profile.enabled }}
{{ .Files.Get "files/profile.sh" | replace "RANKS" (join " " .Values.profile.ranks) | trim }}
{{- end }}
{{- include "oke-h100.rankProgram" . }}
{{- end }}

{{/* Script of every process of the communicator that is made before the program starts. */}}
{{- define "oke-h100.transportRank" }}
{{- .Files.Get "files/transport.sh" }}
{{- end }}
