{{/* Megatron-LM's options of the tokenizer, for training and for the tool that makes its data sets. */}}
{{- define "onprem-p8000.megatronTokenizer" }}
{{- $tokenizer := .Values.tokenizer }}
{{- if eq $tokenizer.kind "none" }}
tokenizer-type: NullTokenizer
vocab-size: {{ int64 .Values.model.vocabularySize }}
{{- else if eq $tokenizer.kind "gpt2" }}
tokenizer-type: GPT2BPETokenizer
vocab-file: {{ printf "%s/gpt2-vocab.json" $tokenizer.path | quote }}
merge-file: {{ printf "%s/gpt2-merges.txt" $tokenizer.path | quote }}
{{- else if eq $tokenizer.kind "sentencepiece" }}
tokenizer-type: {{ eq .Values.model.family "gpt" | ternary "GPTSentencePieceTokenizer" "Llama2Tokenizer" }}
tokenizer-model: {{ printf "%s/tokenizer.model" $tokenizer.path | quote }}
{{- else }}
tokenizer-type: HuggingFaceTokenizer
tokenizer-model: {{ quote $tokenizer.path }}
{{- end }}
{{- end }}
