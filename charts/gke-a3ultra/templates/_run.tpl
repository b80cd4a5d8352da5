{{/*
Name of this run: the release's name and a digest of everything it runs. So a changed run is a new object instead of a
change to an immutable one, and an unchanged upgrade changes nothing. The digest covers text that contains the name
itself, so that text is first made with a placeholder.
*/}}
{{- define "gke-a3ultra.run" -}}
{{- if not .run }}
{{- $draft := merge (dict "run" "RUN") . }}
{{- $spec := include "gke-a3ultra.spec" $draft | fromYaml | toJson }}
{{- $files := include "gke-a3ultra.files" $draft | fromYaml | toJson }}
{{- $labels := include "gke-a3ultra.slot.labels" $draft | fromYaml }}
{{- /* Kueue takes another priority class for a running job, but no other of its labels. */}}
{{- if $labels }}{{ $_ := set $labels "kueue.x-k8s.io/priority-class" (hasKey $labels "kueue.x-k8s.io/priority-class") }}{{ end }}
{{- $digest := printf "%s%s%s%v" $spec $files (toJson $labels) .Values.run.again | sha256sum | trunc 8 }}
{{- $_ := set . "run" (printf "%s-%s" (include "gke-a3ultra.fullname" .) $digest) }}
{{- end }}
{{- .run }}
{{- end }}

{{/* What the run is: the workload kind's object, or a Job for programs without GPUs. */}}
{{- define "gke-a3ultra.spec" -}}
{{- if include "gke-a3ultra.gpu" . }}
{{- include "gke-a3ultra.kindSpec" . }}
{{- else }}
{{- include "gke-a3ultra.job" . }}
{{- end }}
{{- end }}

{{/* The run's own directory: logs, profiles, event files. */}}
{{- define "gke-a3ultra.runDirectory" -}}
{{- printf "%s/%s" (include "gke-a3ultra.home" .) (include "gke-a3ultra.run" . | splitList "-" | last) }}
{{- end }}

{{/* The directory that all runs of a release share, so that a restarted or changed run finds its checkpoints. */}}
{{- define "gke-a3ultra.home" -}}
{{- printf "/outputs/%s" (.Values.run.name | default (printf "%s/%s" .Release.Namespace .Release.Name)) }}
{{- end }}
