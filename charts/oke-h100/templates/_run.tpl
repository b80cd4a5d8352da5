{{/*
First in every file of an object: refuses values that cannot run, and names the run after the release and a digest of
everything it runs. So a changed run is a new object instead of a change to an immutable one, and an unchanged upgrade
changes nothing. The digest covers text that contains the name itself, so that text is first made with a placeholder.
*/}}
{{- define "oke-h100.resolve" -}}
{{- if not .Run }}
{{- if or (kindIs "string" .Values.parallelism) (eq (toString .Values.batch.micro) "auto") (eq (toString .Values.recompute) "auto") }}
{{- fail (printf "\nparallelism, batch.micro, recompute: chartgen alone resolves auto; use -f run.yaml from %s"
  "chartgen plan oke-h100 -f VALUES > run.yaml") }}
{{- end }}
{{- include "oke-h100.figures" . }}
{{- include "oke-h100.validate" . }}
{{- include "oke-h100.named" (list . "RUN") }}
{{- $spec := "" }}
{{- if .Run.gpu }}{{ $spec = include "oke-h100.kindSpec" . }}{{ else }}{{ $spec = include "oke-h100.job" . }}{{ end }}
{{- $files := include "oke-h100.files" . | fromYaml | toJson }}
{{- $labels := dict }}
{{- /* Kueue takes another priority class for a running job, but no other of its labels. */}}
{{- if $labels }}{{ $_ := set $labels "kueue.x-k8s.io/priority-class" (hasKey $labels "kueue.x-k8s.io/priority-class") }}{{ end }}
{{- $digest := printf "%s%s%s%v" (fromYaml $spec | toJson) $files (toJson $labels) .Values.run.again | sha256sum | trunc 8 }}
{{- include "oke-h100.named" (list . (printf "%s-%s" (include "oke-h100.fullname" .) $digest)) }}
{{- end }}
{{- end }}

{{/*
Gives the run its name and what contains it: its own directory, the launcher's native configuration before the user's own
`config`, and the variables of the program. Takes (list root name).
*/}}
{{- define "oke-h100.named" -}}
{{- $root := index . 0 }}
{{- $run := $root.Run }}
{{- $_ := set $run "name" (index . 1) }}
{{- $_ := set $run "directory" (printf "%s/%s" $run.home (splitList "-" $run.name | last)) }}
{{- $config := include (printf "oke-h100.launcher.%s.config" $root.Values.launcher) $root | fromYaml }}
{{- with get $config "Error" }}{{ fail (printf "the settings of launcher %s are not YAML: %s" $root.Values.launcher .) }}{{ end }}
{{- $_ := set $run "config" $config }}
{{- $_ := set $run "transport" (include "oke-h100.transport" $root | fromYaml) }}
{{- $_ := set $run "exporter" (include "oke-h100.exporter" $root | fromYaml) }}
{{- $_ := set $run "affinity" (include "oke-h100.affinity" $root) }}
{{- $_ := set $run "env" (include "oke-h100.env" $root | trim) }}
{{- end }}
