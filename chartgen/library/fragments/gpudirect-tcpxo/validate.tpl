{{- if and $own.daemons .Values.network.ncclBuildType (not $own.build) }}
{{- $_ := set $check "problems" (append $check.problems
  (printf "network.ncclBuildType: plugin %s has one NCCL only; leave it empty" .Values.network.pluginVersion)) }}
{{- end }}
