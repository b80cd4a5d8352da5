{{/*
download: Fetches data, tokenizers and base weights from https://, hf:// and gs:// addresses into the storage.
What the templates of a run include by these names; empty = this launcher needs none.
*/}}
{{- define "eks-p6e-gb200.launcher.download.config" }}{{ end }}
{{- define "eks-p6e-gb200.launcher.download.args" }}
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
{{- define "eks-p6e-gb200.launcher.download.env" }}{{ end }}
{{- define "eks-p6e-gb200.launcher.download.files" }}{{ end }}
{{- define "eks-p6e-gb200.launcher.download.beforeLaunch" }}{{ end }}
{{- define "eks-p6e-gb200.launcher.download.launch" }}{{ end }}
{{- define "eks-p6e-gb200.launcher.download.beforeRank" }}{{ end }}
{{- define "eks-p6e-gb200.launcher.download.programs" }}
places.py: {{ .Files.Get "files/launchers/download/places.py" | trim | toJson }}
web.py: {{ .Files.Get "files/launchers/download/web.py" | trim | toJson }}
{{ base .Run.launcher.program }}: {{ .Files.Get "files/launchers/download/program.py" | trim | toJson }}
{{- end }}
