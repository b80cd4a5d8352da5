{{/*
Refuses values that cannot run, all reasons at once: one line of text for each rule that they break. The limits are those
of Megatron's own start-up checks.
*/}}
{{- define "<%= chart %>.rules" }}
{{- $v := (index . 0).Values }}
{{- $f := index . 1 }}
{{- $p := dict }}
{{- range $name, $size := $v.parallelism }}{{ $_ := set $p $name (int64 $size) }}{{ end }}
<%= rules() %>
{{ end }}

{{- define "<%= chart %>.validate" -}}
{{- $v := .Values }}
{{- $fact := dict }}
{{- include "<%= chart %>.facts" (list . $fact) }}
{{- /* What only Helm knows, as in validate.tpl of launchers, fragments and the workload kind. */}}
{{- $check := dict "problems" list }}
{{- if regexMatch `[\x{7f}-\x{9f}\x{fffe}\x{ffff}]` (toJson .Values) }}
{{- $_ := set $check "problems" (list "values have a character from U+007F to U+009F, U+FFFE or U+FFFF, which Helm cannot write") }}
{{- end }}
{{- $launcher := .Run.launcher }}
{{- $machine := .Run.machine }}
{{- $gpus := .Run.gpusPerNode }}
<% for launcher in target.launchers if "validate.tpl" in parts(launcher) %>
{{- if eq .Values.launcher "<%= launcher.name %>" }}
<%= part(launcher, "validate.tpl") %>
{{- end }}
<% endfor %>
<%= workload_validate() %>
<%= slot("validate.tpl", 0) %>
{{- include "<%= chart %>.machinesFolders" (list . $check) }}
{{- $broken := include "<%= chart %>.rules" (list . $fact) | replace "\n  " " " | splitList "\n" | compact }}
{{- with concat $broken $check.problems }}{{ fail (printf "\n%s" (join "\n" .)) }}{{ end }}
{{- end }}

{{/* Refuses volumes of the machine's own system, as `chartgen check` does. Takes (list root check). */}}
{{- define "<%= chart %>.machinesFolders" -}}
{{- $check := index . 1 }}
{{- $writable := list }}
{{- $v := (index . 0).Values }}
{{- $mounts := $v.extraVolumeMounts | default list }}
{{- range list $v.extraContainers $v.extraInitContainers }}
{{- range . }}{{ $mounts = concat $mounts (.volumeMounts | default list) }}{{ end }}
{{- end }}
{{- range $mounts }}{{ if ne (toString .readOnly) "true" }}{{ $writable = append $writable .name }}{{ end }}{{ end }}
{{- $system := print
  `<%= folders.system %>` }}
{{- $open := print `<%= folders.open[:130] %>`
  `<%= folders.open[130:] %>` }}
{{- range $index, $volume := $v.extraVolumes }}
{{- $host := kindIs "map" $volume.hostPath | ternary $volume.hostPath dict }}
{{- $path := toString $host.path }}
{{- $kept := and (regexMatch `<%= folders.readable %>` $path) (or (has $volume.name $writable) (not (has $host.type (list "File" "Directory")))) }}
{{- if and $host.path (or $kept (not (regexMatch `<%= folders.plain %>` $path)) (hasSuffix ".sock" $path)
  (and (regexMatch $system $path) (not (regexMatch $open $path)))) }}
{{- $_ := set $check "problems" (append $check.problems
  (printf "extraVolumes[%d].hostPath: %s belongs to the machine's own system%s" $index $path ($kept | ternary ", and pods may only read it" ""))) }}
{{- end }}
{{- end }}
{{- end }}
