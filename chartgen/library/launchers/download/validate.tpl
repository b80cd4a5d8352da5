{{- if not (or .Values.data.source .Values.tokenizer.source .Values.checkpoint.source) }}
{{- $_ := set $check "problems" (append $check.problems "data.source: download has nothing to fetch; give it, tokenizer.source or checkpoint.source") }}
{{- end }}
{{- range $key, $source := dict "data.source" .Values.data.source "checkpoint.source" .Values.checkpoint.source }}
{{- if regexMatch "^https?://.*/$" $source }}
{{- $_ := set $check "problems" (append $check.problems (printf "%s: https:// cannot list a folder; name a file, or use hf:// or gs://" $key)) }}
{{- end }}
{{- end }}
{{- if and .Values.tokenizer.source (or (eq .Values.tokenizer.kind "none") (not .Values.tokenizer.path)) }}
{{- $_ := set $check "problems" (append $check.problems "tokenizer.source: needs tokenizer.kind, which says what files there are, and tokenizer.path") }}
{{- end }}
{{- if and .Values.checkpoint.source (not .Values.checkpoint.from) }}
{{- $_ := set $check "problems" (append $check.problems "checkpoint.source: needs checkpoint.from, the directory to put the weights into") }}
{{- end }}
{{- if .Values.storage.data.readOnly }}
{{- $_ := set $check "problems" (append $check.problems "storage.data.readOnly: download writes there; remove it for this release") }}
{{- end }}
