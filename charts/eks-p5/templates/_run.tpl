{{/*
Name of this run: the release's name and a digest of all that it runs. So a changed run is a new object instead of a
change to an immutable one, and an unchanged upgrade changes nothing. The digest covers text that holds the name
itself, so that text is first made with a placeholder.
*/}}
{{- define "eks-p5.run" -}}
{{- if not .run }}
{{- $draft := merge (dict "run" "RUN") . }}
{{- $spec := include "eks-p5.spec" $draft | fromYaml | toJson }}
{{- $files := include "eks-p5.files" $draft | fromYaml | toJson }}
{{- $labels := include "eks-p5.slot.labels" $draft | fromYaml }}
{{- /* Kueue takes another priority class for a running job, but no other of its labels. */}}
{{- if $labels }}{{ $_ := set $labels "kueue.x-k8s.io/priority-class" (hasKey $labels "kueue.x-k8s.io/priority-class") }}{{ end }}
{{- $digest := printf "%s%s%s%v" $spec $files (toJson $labels) .Values.run.again | sha256sum | trunc 8 }}
{{- $_ := set . "run" (printf "%s-%s" (include "eks-p5.fullname" .) $digest) }}
{{- end }}
{{- .run }}
{{- end }}

{{/* What the run is: the workload kind's object, or a Job for programs without GPUs. */}}
{{- define "eks-p5.spec" -}}
{{- include (include "eks-p5.gpu" . | empty | ternary "eks-p5.job" "eks-p5.kindSpec") . }}
{{- end }}

{{/* The run's own directory: logs, profiles, event files. */}}
{{- define "eks-p5.runDirectory" -}}
{{- printf "%s/%s" (include "eks-p5.home" .) (include "eks-p5.run" . | splitList "-" | last) }}
{{- end }}

{{/* The directory that all runs of a release share, so that a restarted or changed run finds its checkpoints. */}}
{{- define "eks-p5.home" -}}
{{- printf "/outputs/%s" (.Values.run.name | default (printf "%s/%s" .Release.Namespace .Release.Name)) }}
{{- end }}

{{/* Files of the run, kept in its ConfigMap. */}}
{{- define "eks-p5.files" -}}
start.sh: {{ include "eks-p5.start" . | toJson }}
{{- if include "eks-p5.gpu" . }}
rank.sh: {{ include "eks-p5.rank" . | toJson }}
{{- end }}
{{- with include "eks-p5.transport" . }}
transport.json: {{ . | fromYaml | toRawJson | toJson }}
transport.py: {{ include "eks-p5.transportProgram" $ | toJson }}
{{- with include "eks-p5.transportRank" $ | trim }}
transport.sh: {{ toJson . }}
{{- end }}
{{- end }}
{{- $program := include (printf "eks-p5.launcher.%s.program" .Values.launcher) . | trim }}
{{- if $program }}
{{ base (include "eks-p5.launcher" . | fromYaml).program }}: {{ $program | toJson }}
{{- end }}
{{- range (include "eks-p5.launcher" . | fromYaml).modules }}
{{ . }}: {{ include (printf "eks-p5.launcher.%s.%s" $.Values.launcher .) $ | trim | toJson }}
{{- end }}
{{- end }}

{{/*
Affinity: the user's and the fragments', and one rule of the chart's own: no pod of this run starts while another run
of the release still has pods, so that two runs never write to one checkpoint directory.
*/}}
{{- define "eks-p5.affinity" -}}
{{- $affinity := include "eks-p5.merge" (list (toYaml .Values.affinity) (include "eks-p5.slot.affinity" .)) | fromYaml }}
{{- $other := dict "topologyKey" "kubernetes.io/os" "labelSelector" (dict "matchExpressions" (list
  (dict "key" "app.kubernetes.io/instance" "operator" "In" "values" (list .Release.Name))
  (dict "key" "run" "operator" "Exists")
  (dict "key" "run" "operator" "NotIn" "values" (list (include "eks-p5.run" .))))) }}
{{- $field := "requiredDuringSchedulingIgnoredDuringExecution" }}
{{- $anti := $affinity.podAntiAffinity | default (dict) }}
{{- $_ := set $anti $field (append (get $anti $field | default (list)) $other) }}
{{- $_ := set $affinity "podAntiAffinity" $anti }}
{{- toYaml $affinity }}
{{- end }}
