{{/*
Name of this run: the release's name and a digest of everything it runs. So a changed run is a new object instead of a
change to an immutable one, and an unchanged upgrade changes nothing. The digest covers text that contains the name
itself, so that text is first made with a placeholder.
*/}}
{{- define "eks-p6e-gb200.run" -}}
{{- if not .run }}
{{- $draft := merge (dict "run" "RUN") . }}
{{- $spec := include "eks-p6e-gb200.spec" $draft | fromYaml | toJson }}
{{- $files := include "eks-p6e-gb200.files" $draft | fromYaml | toJson }}
{{- $labels := include "eks-p6e-gb200.slot.labels" $draft | fromYaml }}
{{- /* Kueue takes another priority class for a running job, but no other of its labels. */}}
{{- if $labels }}{{ $_ := set $labels "kueue.x-k8s.io/priority-class" (hasKey $labels "kueue.x-k8s.io/priority-class") }}{{ end }}
{{- $digest := printf "%s%s%s%v" $spec $files (toJson $labels) .Values.run.again | sha256sum | trunc 8 }}
{{- $_ := set . "run" (printf "%s-%s" (include "eks-p6e-gb200.fullname" .) $digest) }}
{{- end }}
{{- .run }}
{{- end }}

{{/* What the run is: the workload kind's object, or a Job for programs without GPUs. */}}
{{- define "eks-p6e-gb200.spec" -}}
{{- if include "eks-p6e-gb200.gpu" . }}
{{- include "eks-p6e-gb200.kindSpec" . }}
{{- else }}
{{- include "eks-p6e-gb200.job" . }}
{{- end }}
{{- end }}

{{/* The run's own directory: logs, profiles, event files. */}}
{{- define "eks-p6e-gb200.runDirectory" -}}
{{- printf "%s/%s" (include "eks-p6e-gb200.home" .) (include "eks-p6e-gb200.run" . | splitList "-" | last) }}
{{- end }}

{{/* The directory that all runs of a release share, so that a restarted or changed run finds its checkpoints. */}}
{{- define "eks-p6e-gb200.home" -}}
{{- printf "/outputs/%s" (.Values.run.name | default (printf "%s/%s" .Release.Namespace .Release.Name)) }}
{{- end }}
