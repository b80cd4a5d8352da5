{{/* download: Fetches data, tokenizers and base weights from https://, hf:// and gs:// addresses into the storage */}}
{{- define "gke-a3high.launcher.download.args" }}
- --parallel
- {{ int64 (get .Values.launchers "download").parallel | toString | toJson }}
{{- with .Values.data.source }}
- --data
- {{ toJson . }}
- {{ toJson $.Values.data.directory }}
{{- end }}
{{- with .Values.tokenizer.source }}
- --tokenizer
- {{ toJson . }}
- {{ toJson $.Values.tokenizer.path }}
- {{ toJson $.Values.tokenizer.kind }}
{{- end }}
{{- with (get .Values.launchers "download").models }}
- --cache
- {{ toJson (get $.Values.launchers "download").cache }}
{{- range . }}
- --model
- {{ toJson . }}
{{- end }}
{{- end }}
{{- with .Values.checkpoint.source }}
- --checkpoint
- {{ toJson . }}
- {{ toJson $.Values.checkpoint.from }}
{{- end }}
{{- end }}
