{{- $versions := include "<%= chart %>.gpudirectVersions" . | fromYaml }}
{{- $own := get $versions .Values.network.pluginVersion | default dict }}
{{- $daemons := $own.daemons | default list }}
{{- if not $daemons }}
{{- $_ := set $check "problems" (append $check.problems (printf "network.pluginVersion: %s is not a version whose daemon is known; use %s" .Values.network.pluginVersion (keys $versions | sortAlpha | join ", "))) }}
{{- else if not (has .Values.network.daemonVersion $daemons) }}
{{- $_ := set $check "problems" (append $check.problems (printf "network.daemonVersion: %s does not go with plugin %s; use %s" .Values.network.daemonVersion .Values.network.pluginVersion (join " or " $daemons))) }}
{{- end }}
{{- if ne $gpus 8 }}
{{- $_ := set $check "problems" (append $check.problems (printf "gpusPerNode: GPUDirect drives all 8 GPUs of a machine, not %d" $gpus)) }}
{{- end }}
