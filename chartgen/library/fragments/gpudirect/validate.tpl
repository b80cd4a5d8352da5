{{- $versions := include "<%= chart %>.gpudirectVersions" . | fromYaml }}
{{- $own := get $versions .Values.network.pluginVersion | default dict }}
{{- $daemons := $own.daemons | default list }}
{{- if not $daemons }}
{{- $_ := set $check "problems" (append $check.problems
  (printf "network.pluginVersion: the daemon of version %s is not known; use %s" .Values.network.pluginVersion (keys $versions | sortAlpha | join ", "))) }}
{{- else if not (has .Values.network.daemonVersion $daemons) }}
{{- $_ := set $check "problems" (append $check.problems
  (printf "network.daemonVersion: %s is not compatible with plugin %s; use %s" .Values.network.daemonVersion
    .Values.network.pluginVersion (join " or " $daemons))) }}
{{- end }}
