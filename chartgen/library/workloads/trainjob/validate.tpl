{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" .Release.Name) }}
{{- $_ := set $check "problems" (append $check.problems
  (printf "release %s: Kubeflow Trainer wants a name that begins with a letter, of letters, digits and dashes; choose another" .Release.Name)) }}
{{- end }}
