{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" .Release.Name) }}
{{- $_ := set $check "problems" (append $check.problems
  (printf "release %s: Volcano creates a Service of this name, which must begin with a letter and contain no dots; choose another" .Release.Name)) }}
{{- end }}
