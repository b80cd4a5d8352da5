{{/*
download: Fetches data, tokenizers and base weights from https://, hf:// and gs:// addresses into the storage.
What the templates of a run include by these names; empty = this launcher needs none.
*/}}
{{- define "gke-a3mega.launcher.download.config" }}{{ end }}
{{- define "gke-a3mega.launcher.download.args" }}
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
{{- define "gke-a3mega.launcher.download.env" }}{{ end }}
{{- define "gke-a3mega.launcher.download.files" }}{{ end }}
{{- define "gke-a3mega.launcher.download.beforeLaunch" }}{{ end }}
{{- define "gke-a3mega.launcher.download.launch" }}{{ end }}
{{- define "gke-a3mega.launcher.download.beforeRank" }}{{ end }}
{{- define "gke-a3mega.launcher.download.programs" }}
places.py: {{ .Files.Get "files/launchers/download/places.py" | trim | toJson }}
web.py: {{ .Files.Get "files/launchers/download/web.py" | trim | toJson }}
{{ base .Run.launcher.program }}: {{ .Files.Get "files/launchers/download/program.py" | trim | toJson }}
{{- end }}
