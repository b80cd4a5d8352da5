{{- if not (regexMatch "^[a-z][-a-z0-9]*$" .Release.Name) }}
{{- $_ := set $check "problems" (append $check.problems
  (printf "release %s: the operator accepts only names of letters, digits and dashes that begin with a letter; choose another" .Release.Name)) }}
{{- end }}
