{{/* pile-dataprep: Fetches numbered files of the Pile, unpacks and tokenizes them into the data sets that training reads */}}
{{- define "crusoe.launcher.pile-dataprep.args" }}
{{- $tokenizer := (include "crusoe.launcher.nemo-1.config" . | fromYaml).model.tokenizer }}
# NeMo's tool and its arguments; its tokenizer is that of training.
- /opt/NeMo/scripts/nlp_language_modeling/preprocess_data_for_megatron.py
{{- range $option, $key := dict "tokenizer-library" "library" "tokenizer-type" "type" "tokenizer-model" "model" "vocab-file" "vocab_file" "merge-file" "merge_file" }}
{{- with get $tokenizer $key }}
- --{{ $option }}
- {{ toJson . }}
{{- end }}
{{- end }}
- --dataset-impl
- mmap
- --append-eod
{{- end }}
{{- define "crusoe.launcher.pile-dataprep.env" }}
# Every rank takes its share of these; training reads the same list.
- name: DATA_NAMES
  value: {{ include "crusoe.dataNames" . | fromYamlArray | join "\n" | quote }}
- name: DATA_SOURCE
  value: {{ .Values.data.source | default "https://huggingface.co/datasets/monology/pile-uncopyrighted/resolve/main/train/" | quote }}
# The tokenizer is on the disk.
- name: HF_HUB_OFFLINE
  value: "1"
{{- end }}
