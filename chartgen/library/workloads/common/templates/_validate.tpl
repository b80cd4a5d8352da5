{{/* Refuses values that cannot run, all reasons at once. The limits are those of Megatron's own start-up checks. */}}
{{- define "<%= chart %>.validate" -}}
{{- $v := .Values }}
{{- $fact := dict }}
{{- include "<%= chart %>.facts" (list . $fact) }}
{{- $problems := list }}
<%= rules() %>
{{- /* What only Helm knows, as in validate.tpl of launchers, fragments and the workload kind. */}}
{{- $check := dict "problems" list }}
{{- $launcher := include "<%= chart %>.launcher" . | fromJson }}
{{- $machine := include "<%= chart %>.machine" . | fromJson }}
{{- $gpus := include "<%= chart %>.gpusPerNode" . | int64 }}
<% for launcher in target.launchers if "validate.tpl" in parts(launcher) %>
{{- if eq .Values.launcher "<%= launcher.name %>" }}
<%= part(launcher, "validate.tpl") %>
{{- end }}
<% endfor %>
<%= workload_validate() %>
<%= slot("validate.tpl", 0) %>
{{- with concat $problems $check.problems }}{{ fail (printf "\n%s" (join "\n" .)) }}{{ end }}
{{- end }}
