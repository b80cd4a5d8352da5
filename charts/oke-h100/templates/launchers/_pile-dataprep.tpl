{{/*
pile-dataprep: Fetches numbered files of the Pile, unpacks and tokenizes them into the data sets that training reads.
What the templates of a run include by these names; empty = this launcher needs none.
*/}}
{{- define "oke-h100.launcher.pile-dataprep.config" }}{{ end }}
{{- define "oke-h100.launcher.pile-dataprep.args" }}
{{- $tokenizer := include "oke-h100.nemoTokenizer" . | fromYaml }}
# NeMo's tool and its arguments; its tokenizer is that of training.
- /opt/NeMo/scripts/nlp_language_modeling/preprocess_data_for_megatron.py
{{- range $key := list "merge_file" "library" "model" "type" "vocab_file" }}
{{- with get $tokenizer $key }}
- --{{ hasSuffix "_file" $key | ternary (replace "_" "-" $key) (printf "tokenizer-%s" $key) }}
- {{ toJson . }}
{{- end }}
{{- end }}
- --dataset-impl
- mmap
- --append-eod
{{- end }}
{{- define "oke-h100.launcher.pile-dataprep.env" }}
# Every rank takes its share of these; training reads the same list.
- name: DATA_NAMES
  value: {{ include "oke-h100.dataNames" . | fromYamlArray | join "\n" | quote }}
- name: DATA_SOURCE
  value: {{ .Values.data.source | default "https://huggingface.co/datasets/monology/pile-uncopyrighted/resolve/main/train/" | quote }}
# The tokenizer is on the disk.
- name: HF_HUB_OFFLINE
  value: "1"
{{- end }}
{{- define "oke-h100.launcher.pile-dataprep.mounts" }}{{ end }}
{{- define "oke-h100.launcher.pile-dataprep.files" }}{{ end }}
{{- define "oke-h100.launcher.pile-dataprep.beforeLaunch" }}{{ end }}
{{- define "oke-h100.launcher.pile-dataprep.launch" }}{{ end }}
{{- define "oke-h100.launcher.pile-dataprep.beforeRank" }}{{ end }}
{{- define "oke-h100.launcher.pile-dataprep.programs" }}
{{ base .Run.launcher.program }}: {{ .Files.Get "files/launchers/pile-dataprep/program.sh" | trim | toJson }}
{{- end }}
