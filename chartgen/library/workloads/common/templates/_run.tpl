{{/*
Name of this run: the release's name and a digest of all that it runs. So a changed run is a new object instead of a
change to an immutable one, and an unchanged upgrade changes nothing. The digest covers text that holds the name
itself, so that text is first made with a placeholder.
*/}}
{{- define "<%= chart %>.run" -}}
{{- if not .run }}
{{- $draft := merge (dict "run" "RUN") . }}
{{- $spec := include "<%= chart %>.spec" $draft | fromYaml | toJson }}
{{- $files := include "<%= chart %>.files" $draft | fromYaml | toJson }}
{{- $labels := include "<%= chart %>.slot.labels" $draft | fromYaml }}
{{- /* Kueue takes another priority class for a running job, but no other of its labels. */}}
{{- if $labels }}{{ $_ := set $labels "kueue.x-k8s.io/priority-class" (hasKey $labels "kueue.x-k8s.io/priority-class") }}{{ end }}
{{- $digest := printf "%s%s%s%v" $spec $files (toJson $labels) .Values.run.again | sha256sum | trunc 8 }}
{{- $_ := set . "run" (printf "%s-%s" (include "<%= chart %>.fullname" .) $digest) }}
{{- end }}
{{- .run }}
{{- end }}

{{/* What the run is: the workload kind's object, or a Job for programs without GPUs. */}}
{{- define "<%= chart %>.spec" -}}
{{- include (include "<%= chart %>.gpu" . | empty | ternary "<%= chart %>.job" "<%= chart %>.kindSpec") . }}
{{- end }}

{{/* The run's own directory: logs, profiles, event files. */}}
{{- define "<%= chart %>.runDirectory" -}}
{{- printf "%s/%s" (include "<%= chart %>.home" .) (include "<%= chart %>.run" . | splitList "-" | last) }}
{{- end }}

{{/* The directory that all runs of a release share, so that a restarted or changed run finds its checkpoints. */}}
{{- define "<%= chart %>.home" -}}
{{- printf "/outputs/%s" (.Values.run.name | default (printf "%s/%s" .Release.Namespace .Release.Name)) }}
{{- end }}

{{/* Files of the run, kept in its ConfigMap. */}}
{{- define "<%= chart %>.files" -}}
start.sh: {{ include "<%= chart %>.start" . | toJson }}
{{- if include "<%= chart %>.gpu" . }}
rank.sh: {{ include "<%= chart %>.rank" . | toJson }}
{{- end }}
{{- with include "<%= chart %>.transport" . }}
transport.json: {{ . | fromYaml | toRawJson | toJson }}
transport.py: {{ include "<%= chart %>.transportProgram" $ | toJson }}
{{- with include "<%= chart %>.transportRank" $ | trim }}
transport.sh: {{ toJson . }}
{{- end }}
{{- end }}
{{- $program := include (printf "<%= chart %>.launcher.%s.program" .Values.launcher) . | trim }}
{{- if $program }}
{{ base (include "<%= chart %>.launcher" . | fromYaml).program }}: {{ $program | toJson }}
{{- end }}
{{- range (include "<%= chart %>.launcher" . | fromYaml).modules }}
{{ . }}: {{ include (printf "<%= chart %>.launcher.%s.%s" $.Values.launcher .) $ | trim | toJson }}
{{- end }}
{{- end }}

{{/*
Affinity: the user's and the fragments', and one rule of the chart's own: no pod of this run starts while another run
of the release still has pods, so that two runs never write to one checkpoint directory.
*/}}
{{- define "<%= chart %>.affinity" -}}
{{- $affinity := include "<%= chart %>.merge" (list (toYaml .Values.affinity) (include "<%= chart %>.slot.affinity" .)) | fromYaml }}
{{- $other := dict "topologyKey" "kubernetes.io/os" "labelSelector" (dict "matchExpressions" (list
  (dict "key" "app.kubernetes.io/instance" "operator" "In" "values" (list .Release.Name))
  (dict "key" "run" "operator" "Exists")
  (dict "key" "run" "operator" "NotIn" "values" (list (include "<%= chart %>.run" .))))) }}
{{- $field := "requiredDuringSchedulingIgnoredDuringExecution" }}
{{- $anti := $affinity.podAntiAffinity | default (dict) }}
{{- $_ := set $anti $field (append (get $anti $field | default (list)) $other) }}
{{- $_ := set $affinity "podAntiAffinity" $anti }}
{{- toYaml $affinity }}
{{- end }}
