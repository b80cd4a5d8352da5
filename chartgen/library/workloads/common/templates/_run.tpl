{{/*
First in every file of an object: refuses values that cannot run, and names the run after the release and a digest of
everything it runs. So a changed run is a new object instead of a change to an immutable one, and an unchanged upgrade
changes nothing. The digest covers text that contains the name itself, so that text is first made with a placeholder.
*/}}
{{- define "<%= chart %>.resolve" -}}
{{- if not .Run }}
{{- if or (kindIs "string" .Values.parallelism) (eq (toString .Values.batch.micro) "auto") (eq (toString .Values.recompute) "auto") }}
{{- fail (printf "\nparallelism, batch.micro, recompute: chartgen alone resolves auto; use -f run.yaml from %s"
  "chartgen plan <%= target.name %> -f VALUES > run.yaml") }}
{{- end }}
{{- include "<%= chart %>.figures" . }}
{{- include "<%= chart %>.validate" . }}
{{- include "<%= chart %>.named" (list . "RUN") }}
<% if other_job %>
{{- $spec := "" }}
{{- if .Run.gpu }}{{ $spec = include "<%= chart %>.kindSpec" . }}{{ else }}{{ $spec = include "<%= chart %>.job" . }}{{ end }}
<% else %>
{{- $spec := include "<%= chart %>.kindSpec" . }}
<% endif %>
{{- $files := include "<%= chart %>.files" . | fromYaml | toJson }}
{{- $labels := <% if filled("labels") %>include "<%= chart %>.slot.labels" . | fromYaml<% else %>dict<% endif %> }}
{{- /* Kueue takes another priority class for a running job, but no other of its labels. */}}
{{- if $labels }}{{ $_ := set $labels "kueue.x-k8s.io/priority-class" (hasKey $labels "kueue.x-k8s.io/priority-class") }}{{ end }}
<% if policies %>
{{- $files = print $files (include "<%= chart %>.policy" .) }}
<% endif %>
{{- $digest := printf "%s%s%s%v" (fromYaml $spec | toJson) $files (toJson $labels) .Values.run.again | sha256sum | trunc 8 }}
{{- include "<%= chart %>.named" (list . (printf "%s-%s" (include "<%= chart %>.fullname" .) $digest)) }}
{{- end }}
{{- end }}

{{/*
Gives the run its name and what contains it: its own directory, the launcher's native configuration before the user's own
`config`, and the variables of the program. Takes (list root name).
*/}}
{{- define "<%= chart %>.named" -}}
{{- $root := index . 0 }}
{{- $run := $root.Run }}
{{- $_ := set $run "name" (index . 1) }}
{{- $_ := set $run "directory" (printf "%s/%s" $run.home (splitList "-" $run.name | last)) }}
{{- $config := include (printf "<%= chart %>.launcher.%s.config" $root.Values.launcher) $root | fromYaml }}
{{- with get $config "Error" }}{{ fail (printf "the settings of launcher %s are not YAML: %s" $root.Values.launcher .) }}{{ end }}
{{- $_ := set $run "config" $config }}
<% if kind.starts == "gpu" %>
{{- $_ := set $run "transport" (include "<%= chart %>.transport" $root | fromYaml) }}
{{- $_ := set $run "exporter" (include "<%= chart %>.exporter" $root | fromYaml) }}
<% endif %>
{{- $_ := set $run "affinity" (include "<%= chart %>.affinity" $root) }}
{{- $_ := set $run "env" (include "<%= chart %>.env" $root | trim) }}
{{- end }}
