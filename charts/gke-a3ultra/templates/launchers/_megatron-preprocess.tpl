{{/* megatron-preprocess: Tokenizes one JSON Lines file into the data set that training reads, with Megatron-LM's own tool */}}
{{- define "gke-a3ultra.launcher.megatron-preprocess.args" }}
{{- $trainer := include "gke-a3ultra.launcher.megatron-lm.config" . | fromYaml }}
{{- $program := (get .Values.launchers "megatron-lm").program | default (get (include "gke-a3ultra.launchers" . | fromYaml) "megatron-lm").program }}
# Where the data set goes, the tool, and the tool's own arguments; its tokenizer is that of training.
- {{ include "gke-a3ultra.dataNames" . | fromYamlArray | first | default "" | toJson }}
- {{ printf "%s/tools/preprocess_data.py" (dir $program) | toJson }}
- --input
- {{ include "gke-a3ultra.dataInput" . | toJson }}
{{- range $option := list "tokenizer-type" "tokenizer-model" "vocab-file" "merge-file" }}
{{- with get $trainer $option }}
- --{{ $option }}
- {{ toJson . }}
{{- end }}
{{- end }}
- --append-eod
- --workers
- {{ int64 (get .Values.launchers "megatron-preprocess").workers | toString | toJson }}
{{- end }}
