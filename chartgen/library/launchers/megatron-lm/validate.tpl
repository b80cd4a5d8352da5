{{- $release := regexFind "^nvcr[.]io/nvidia/nemo:[0-9]{2}[.][0-9]{2}" $launcher.image | regexFind "[0-9]{2}[.][0-9]{2}$" }}
{{- $since := dict<% for row in compat().features if row.feature in launcher.precisions %> "<%= row.feature %>" "<%= row.from %>"<% endfor %> }}
{{- $first := get $since .Values.precision }}
{{- if and $release (gt $first $release) (not (get .Values.launchers "megatron-lm").program) }}
{{- $_ := set $check "problems" (append $check.problems
  (printf "launchers.megatron-lm.image: %s has no precision %s; use nvcr.io/nvidia/nemo:%s or newer" $launcher.image .Values.precision $first)) }}
{{- end }}
