{{- if or (not .Values.data.name) (not .Values.data.source) (hasSuffix "/" .Values.data.source) }}
{{- $_ := set $check "problems" (append $check.problems "data.source: megatron-preprocess needs the address of one file, as download takes it, and data.name") }}
{{- end }}
{{- if .Values.data.shards }}
{{- $_ := set $check "problems" (append $check.problems "data.shards: megatron-preprocess makes one data set of one file; set 0, or use pile-dataprep") }}
{{- end }}
{{- if or (eq .Values.tokenizer.kind "none") (not .Values.tokenizer.path) }}
{{- $_ := set $check "problems" (append $check.problems "tokenizer.kind: megatron-preprocess needs a tokenizer and its tokenizer.path") }}
{{- end }}
{{- if .Values.storage.data.readOnly }}
{{- $_ := set $check "problems" (append $check.problems "storage.data.readOnly: megatron-preprocess writes there; remove it for this release") }}
{{- end }}
