{{/* What a launcher of the runs is to this chart, which has none: a program on GPUs. */}}
{{- define "<%= chart %>.launcher" -}}
{"task": "train", "processes": "gpu", "defaults": {}}
{{- end }}
