{{/*
Name of this run: the release's name and a digest of all that it runs. So a changed run is a new object instead of a
change to an immutable one, and an unchanged upgrade changes nothing. The digest covers text that holds the name
itself, so that text is first made with a placeholder.
*/}}
{{- define "gke-a3mega.run" -}}
{{- if not .run }}
{{- $draft := merge (dict "run" "RUN") . }}
{{- $spec := include "gke-a3mega.spec" $draft | fromYaml | toJson }}
{{- $files := include "gke-a3mega.files" $draft | fromYaml | toJson }}
{{- $labels := include "gke-a3mega.slot.labels" $draft | fromYaml }}
{{- /* Kueue takes another priority class for a running job, but no other of its labels. */}}
{{- if $labels }}{{ $_ := set $labels "kueue.x-k8s.io/priority-class" (hasKey $labels "kueue.x-k8s.io/priority-class") }}{{ end }}
{{- $digest := printf "%s%s%s%v" $spec $files (toJson $labels) .Values.run.again | sha256sum | trunc 8 }}
{{- $_ := set . "run" (printf "%s-%s" (include "gke-a3mega.fullname" .) $digest) }}
{{- end }}
{{- .run }}
{{- end }}

{{/* What the run is: the workload kind's object, or a Job for programs without GPUs. */}}
{{- define "gke-a3mega.spec" -}}
{{- include (include "gke-a3mega.gpu" . | empty | ternary "gke-a3mega.job" "gke-a3mega.kindSpec") . }}
{{- end }}

{{/* The run's own directory: logs, profiles, event files. */}}
{{- define "gke-a3mega.runDirectory" -}}
{{- printf "%s/%s" (include "gke-a3mega.home" .) (include "gke-a3mega.run" . | splitList "-" | last) }}
{{- end }}

{{/* The directory that all runs of a release share, so that a restarted or changed run finds its checkpoints. */}}
{{- define "gke-a3mega.home" -}}
{{- printf "/outputs/%s" (.Values.run.name | default (printf "%s/%s" .Release.Namespace .Release.Name)) }}
{{- end }}

{{/* Files of the run, kept in its ConfigMap. */}}
{{- define "gke-a3mega.files" -}}
start.sh: {{ include "gke-a3mega.start" . | toJson }}
{{- if include "gke-a3mega.gpu" . }}
rank.sh: {{ include "gke-a3mega.rank" . | toJson }}
{{- end }}
{{- with include "gke-a3mega.transport" . }}
transport.json: {{ . | fromYaml | toRawJson | toJson }}
transport.py: {{ include "gke-a3mega.transportProgram" $ | toJson }}
{{- with include "gke-a3mega.transportRank" $ | trim }}
transport.sh: {{ toJson . }}
{{- end }}
{{- end }}
{{- $program := include (printf "gke-a3mega.launcher.%s.program" .Values.launcher) . | trim }}
{{- if $program }}
{{ base (include "gke-a3mega.launcher" . | fromYaml).program }}: {{ $program | toJson }}
{{- end }}
{{- range (include "gke-a3mega.launcher" . | fromYaml).modules }}
{{ . }}: {{ include (printf "gke-a3mega.launcher.%s.%s" $.Values.launcher .) $ | trim | toJson }}
{{- end }}
{{- end }}

{{/*
Affinity: the user's and the fragments', and one rule of the chart's own: no pod of this run starts while another run
of the release still has pods, so that two runs never write to one checkpoint directory.
*/}}
{{- define "gke-a3mega.affinity" -}}
{{- $affinity := include "gke-a3mega.merge" (list (toYaml .Values.affinity) (include "gke-a3mega.slot.affinity" .)) | fromYaml }}
{{- $other := dict "topologyKey" "kubernetes.io/os" "labelSelector" (dict "matchExpressions" (list
  (dict "key" "app.kubernetes.io/instance" "operator" "In" "values" (list .Release.Name))
  (dict "key" "run" "operator" "Exists")
  (dict "key" "run" "operator" "NotIn" "values" (list (include "gke-a3mega.run" .))))) }}
{{- $field := "requiredDuringSchedulingIgnoredDuringExecution" }}
{{- $anti := $affinity.podAntiAffinity | default (dict) }}
{{- $_ := set $anti $field (append (get $anti $field | default (list)) $other) }}
{{- $_ := set $affinity "podAntiAffinity" $anti }}
{{- toYaml $affinity }}
{{- end }}
