{{/* What a TrainJob is: a name for a runtime. `suspend` and `runtimePatches` are Kueue's to set. */}}
{{- define "<%= chart %>.objectSpec" -}}
runtimeRef:
  apiGroup: trainer.kubeflow.org
  kind: TrainingRuntime
  name: {{ .Run.name }}
{{- end }}
