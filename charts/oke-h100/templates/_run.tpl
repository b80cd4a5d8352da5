{{/*
Name of this run: the release's name and a digest of all that it runs. So a changed run is a new object instead of a
change to an immutable one, and an unchanged upgrade changes nothing. The digest covers text that holds the name
itself, so that text is first made with a placeholder.
*/}}
{{- define "oke-h100.run" -}}
{{- if not .run }}
{{- $draft := merge (dict "run" "RUN") . }}
{{- $spec := include "oke-h100.spec" $draft | fromYaml | toJson }}
{{- $files := include "oke-h100.files" $draft | fromYaml | toJson }}
{{- $labels := include "oke-h100.slot.labels" $draft | fromYaml }}
{{- /* Kueue takes another priority class for a running job, but no other of its labels. */}}
{{- if $labels }}{{ $_ := set $labels "kueue.x-k8s.io/priority-class" (hasKey $labels "kueue.x-k8s.io/priority-class") }}{{ end }}
{{- $digest := printf "%s%s%s%v" $spec $files (toJson $labels) .Values.run.again | sha256sum | trunc 8 }}
{{- $_ := set . "run" (printf "%s-%s" (include "oke-h100.fullname" .) $digest) }}
{{- end }}
{{- .run }}
{{- end }}

{{/* What the run is: the workload kind's object, or a Job for programs without GPUs. */}}
{{- define "oke-h100.spec" -}}
{{- include (include "oke-h100.gpu" . | empty | ternary "oke-h100.job" "oke-h100.kindSpec") . }}
{{- end }}

{{/* The run's own directory: logs, profiles, event files. */}}
{{- define "oke-h100.runDirectory" -}}
{{- printf "%s/%s" (include "oke-h100.home" .) (include "oke-h100.run" . | splitList "-" | last) }}
{{- end }}

{{/* The directory that all runs of a release share, so that a restarted or changed run finds its checkpoints. */}}
{{- define "oke-h100.home" -}}
{{- printf "/outputs/%s" (.Values.run.name | default (printf "%s/%s" .Release.Namespace .Release.Name)) }}
{{- end }}

{{/* Files of the run, kept in its ConfigMap. */}}
{{- define "oke-h100.files" -}}
start.sh: {{ include "oke-h100.start" . | toJson }}
{{- if include "oke-h100.gpu" . }}
rank.sh: {{ include "oke-h100.rank" . | toJson }}
{{- end }}
{{- with include "oke-h100.transport" . }}
transport.json: {{ . | fromYaml | toRawJson | toJson }}
transport.py: {{ include "oke-h100.transportProgram" $ | toJson }}
{{- with include "oke-h100.transportRank" $ | trim }}
transport.sh: {{ toJson . }}
{{- end }}
{{- end }}
{{- $program := include (printf "oke-h100.launcher.%s.program" .Values.launcher) . | trim }}
{{- if $program }}
{{ base (include "oke-h100.launcher" . | fromYaml).program }}: {{ $program | toJson }}
{{- end }}
{{- range (include "oke-h100.launcher" . | fromYaml).modules }}
{{ . }}: {{ include (printf "oke-h100.launcher.%s.%s" $.Values.launcher .) $ | trim | toJson }}
{{- end }}
{{- end }}

{{/*
Affinity: the user's and the fragments', and one rule of the chart's own: no pod of this run starts while another run
of the release still has pods, so that two runs never write to one checkpoint directory.
*/}}
{{- define "oke-h100.affinity" -}}
{{- $affinity := include "oke-h100.merge" (list (toYaml .Values.affinity) (include "oke-h100.slot.affinity" .)) | fromYaml }}
{{- $other := dict "topologyKey" "kubernetes.io/os" "labelSelector" (dict "matchExpressions" (list
  (dict "key" "app.kubernetes.io/instance" "operator" "In" "values" (list .Release.Name))
  (dict "key" "run" "operator" "Exists")
  (dict "key" "run" "operator" "NotIn" "values" (list (include "oke-h100.run" .))))) }}
{{- $field := "requiredDuringSchedulingIgnoredDuringExecution" }}
{{- $anti := $affinity.podAntiAffinity | default (dict) }}
{{- $_ := set $anti $field (append (get $anti $field | default (list)) $other) }}
{{- $_ := set $affinity "podAntiAffinity" $anti }}
{{- toYaml $affinity }}
{{- end }}
