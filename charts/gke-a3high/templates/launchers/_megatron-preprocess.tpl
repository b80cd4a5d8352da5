{{/*
megatron-preprocess: Tokenizes one JSON Lines file into the data set that training reads, with Megatron-LM's own tool.
What the templates of a run include by these names; empty = this launcher needs none.
*/}}
{{- define "gke-a3high.launcher.megatron-preprocess.config" }}{{ end }}
{{- define "gke-a3high.launcher.megatron-preprocess.args" }}
{{- $trainer := include "gke-a3high.megatronTokenizer" . | fromYaml }}
{{- $default := (.Files.Get "files/launchers/megatron-lm/launcher.yaml" | fromYaml).program }}
{{- $program := (get .Values.launchers "megatron-lm").program | default $default }}
# Where the data set goes, the tool, and the tool's own arguments; its tokenizer is that of training.
- {{ include "gke-a3high.dataNames" . | fromYamlArray | first | default "" | toJson }}
- {{ printf "%s/tools/preprocess_data.py" (dir $program) | toJson }}
- --input
- {{ include "gke-a3high.dataInput" . | toJson }}
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
{{- define "gke-a3high.launcher.megatron-preprocess.env" }}{{ end }}
{{- define "gke-a3high.launcher.megatron-preprocess.mounts" }}{{ end }}
{{- define "gke-a3high.launcher.megatron-preprocess.files" }}{{ end }}
{{- define "gke-a3high.launcher.megatron-preprocess.beforeLaunch" }}{{ end }}
{{- define "gke-a3high.launcher.megatron-preprocess.launch" }}{{ end }}
{{- define "gke-a3high.launcher.megatron-preprocess.beforeRank" }}{{ end }}
{{- define "gke-a3high.launcher.megatron-preprocess.programs" }}
{{ base .Run.launcher.program }}: {{ .Files.Get "files/launchers/megatron-preprocess/program.sh" | trim | toJson }}
{{- end }}
