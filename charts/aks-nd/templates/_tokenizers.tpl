{{/* Megatron-LM's options of the tokenizer, for training and for the tool that makes its data sets. */}}
{{- define "aks-nd.megatronTokenizer" }}
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

{{/* NeMo 1's, for the same two. */}}
{{- define "aks-nd.nemoTokenizer" -}}
{{- $kind := .Values.tokenizer.kind }}
{{- $path := .Values.tokenizer.path }}
{{- if or (eq $kind "none") (eq $kind "gpt2") }}
library: megatron
type: GPT2BPETokenizer
vocab_file: {{ empty $path | ternary "null" (printf "%s/gpt2-vocab.json" $path | toJson) }}
merge_file: {{ empty $path | ternary "null" (printf "%s/gpt2-merges.txt" $path | toJson) }}
{{- else if eq $kind "sentencepiece" }}
library: sentencepiece
model: {{ printf "%s/tokenizer.model" $path | toJson }}
{{- else }}
library: huggingface
type: {{ $path | toJson }}
# Llama 3 has no other; NeMo's own default is the slow one.
use_fast: true
{{- end }}
{{- end }}
