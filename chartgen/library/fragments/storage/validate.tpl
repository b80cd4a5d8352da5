{{- range $role, $store := .Values.storage }}
{{- if and $store.mountOptions (regexMatch "^(pvc|nfs|disk|memory)://" $store.from) }}
{{- $_ := set $check "problems" (append $check.problems (printf "storage.%s.mountOptions: %s takes none; remove them" $role $store.from)) }}
{{- end }}
{{- end }}
{{- if .Values.storage.outputs.readOnly }}
{{- $_ := set $check "problems" (append $check.problems "storage.outputs.readOnly: runs write there; remove it") }}
{{- end }}
