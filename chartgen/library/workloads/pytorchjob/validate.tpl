{{- if not (regexMatch "^[a-z][-a-z0-9]*$" .Release.Name) }}
{{- $_ := set $check "problems" (append $check.problems (printf "release %s: the operator wants a name that begins with a letter, of letters, digits and dashes; choose another" .Release.Name)) }}
{{- end }}
{{- if .Values.run.ttlSecondsAfterFinished }}
{{- $_ := set $check "problems" (append $check.problems "run.ttlSecondsAfterFinished: a finished PyTorchJob that is gone would be started again by the next upgrade; leave it null") }}
{{- end }}
