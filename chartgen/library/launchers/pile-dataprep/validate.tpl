{{- if or (not .Values.data.name) (not .Values.data.shards) }}
{{- $_ := set $check "problems" (append $check.problems "data.shards: pile-dataprep needs the number of the Pile's files to prepare, 1 to 30, and data.name") }}
{{- else if and (not .Values.data.source) (gt (int64 .Values.data.shards) 30) }}
{{- $_ := set $check "problems" (append $check.problems (printf "data.shards: the Pile has 30 files, not %d" (int64 .Values.data.shards))) }}
{{- end }}
{{- if and .Values.data.source (not (regexMatch "^https?://.*/$" .Values.data.source)) }}
{{- $_ := set $check "problems" (append $check.problems "data.source: must be the https:// address of a folder with 00.jsonl.zst and so on, ending in /") }}
{{- end }}
{{- if or (eq .Values.tokenizer.kind "none") (not .Values.tokenizer.path) }}
{{- $_ := set $check "problems" (append $check.problems "tokenizer.kind: pile-dataprep needs a tokenizer and its tokenizer.path") }}
{{- end }}
{{- if .Values.storage.data.readOnly }}
{{- $_ := set $check "problems" (append $check.problems "storage.data.readOnly: pile-dataprep writes there; remove it for this release") }}
{{- end }}
