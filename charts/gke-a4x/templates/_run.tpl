{{/*
Name of this run: the release's name and a digest of everything it runs. So a changed run is a new object instead of a
change to an immutable one, and an unchanged upgrade changes nothing. The digest covers text that contains the name
itself, so that text is first made with a placeholder.
*/}}
{{- define "gke-a4x.run" -}}
{{- if not .run }}
{{- $draft := merge (dict "run" "RUN") . }}
{{- $spec := include "gke-a4x.spec" $draft | fromYaml | toJson }}
{{- $files := include "gke-a4x.files" $draft | fromYaml | toJson }}
{{- $labels := include "gke-a4x.slot.labels" $draft | fromYaml }}
{{- /* Kueue takes another priority class for a running job, but no other of its labels. */}}
{{- if $labels }}{{ $_ := set $labels "kueue.x-k8s.io/priority-class" (hasKey $labels "kueue.x-k8s.io/priority-class") }}{{ end }}
{{- $digest := printf "%s%s%s%v" $spec $files (toJson $labels) .Values.run.again | sha256sum | trunc 8 }}
{{- $_ := set . "run" (printf "%s-%s" (include "gke-a4x.fullname" .) $digest) }}
{{- end }}
{{- .run }}
{{- end }}

{{/* What the run is: the workload kind's object, or a Job for programs without GPUs. */}}
{{- define "gke-a4x.spec" -}}
{{- if include "gke-a4x.gpu" . }}
{{- include "gke-a4x.kindSpec" . }}
{{- else }}
{{- include "gke-a4x.job" . }}
{{- end }}
{{- end }}

{{/* The run's own directory: logs, profiles, event files. */}}
{{- define "gke-a4x.runDirectory" -}}
{{- printf "%s/%s" (include "gke-a4x.home" .) (include "gke-a4x.run" . | splitList "-" | last) }}
{{- end }}

{{/* The directory that all runs of a release share, so that a restarted or changed run finds its checkpoints. */}}
{{- define "gke-a4x.home" -}}
{{- printf "/outputs/%s" (.Values.run.name | default (printf "%s/%s" .Release.Namespace .Release.Name)) }}
{{- end }}
