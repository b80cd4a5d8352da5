{{/*
Name of this run: the release's name and a digest of everything it runs. So a changed run is a new object instead of a
change to an immutable one, and an unchanged upgrade changes nothing. The digest covers text that contains the name
itself, so that text is first made with a placeholder.
*/}}
{{- define "<%= chart %>.run" -}}
{{- if not .run }}
{{- $draft := merge (dict "run" "RUN") . }}
{{- $spec := include "<%= chart %>.spec" $draft | fromYaml | toJson }}
{{- $files := include "<%= chart %>.files" $draft | fromYaml | toJson }}
{{- $labels := <% if filled("labels") %>include "<%= chart %>.slot.labels" $draft | fromYaml<% else %>dict<% endif %> }}
{{- /* Kueue takes another priority class for a running job, but no other of its labels. */}}
{{- if $labels }}{{ $_ := set $labels "kueue.x-k8s.io/priority-class" (hasKey $labels "kueue.x-k8s.io/priority-class") }}{{ end }}
{{- $digest := printf "%s%s%s%v" $spec $files (toJson $labels) .Values.run.again | sha256sum | trunc 8 }}
{{- $_ := set . "run" (printf "%s-%s" (include "<%= chart %>.fullname" .) $digest) }}
{{- end }}
{{- .run }}
{{- end }}

{{/* What the run is: the workload kind's object<% if other_job %>, or a Job for programs without GPUs<% endif %>. */}}
{{- define "<%= chart %>.spec" -}}
<% if other_job %>
{{- if include "<%= chart %>.gpu" . }}
{{- include "<%= chart %>.kindSpec" . }}
{{- else }}
{{- include "<%= chart %>.job" . }}
{{- end }}
<% else %>
{{- include "<%= chart %>.kindSpec" . }}
<% endif %>
{{- end }}

{{/* The run's own directory: logs, profiles, event files. */}}
{{- define "<%= chart %>.runDirectory" -}}
{{- printf "%s/%s" (include "<%= chart %>.home" .) (include "<%= chart %>.run" . | splitList "-" | last) }}
{{- end }}

{{/* The directory that all runs of a release share, so that a restarted or changed run finds its checkpoints. */}}
{{- define "<%= chart %>.home" -}}
{{- printf "/outputs/%s" (.Values.run.name | default (printf "%s/%s" .Release.Namespace .Release.Name)) }}
{{- end }}
