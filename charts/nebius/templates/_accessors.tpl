{{/* Name of the run: the release's name and a digest of everything it runs. */}}
{{- define "nebius.run" }}{{ .Run.name }}{{ end }}

{{/* The directory that all runs of a release share, so that a restarted or changed run finds its checkpoints. */}}
{{- define "nebius.home" }}{{ .Run.home }}{{ end }}

{{/* The chosen launcher, as JSON; its values win over its defaults. */}}
{{- define "nebius.launcher" }}{{ toJson .Run.launcher }}{{ end }}

{{/* The machine type of the run, as JSON. */}}
{{- define "nebius.machine" }}{{ toJson .Run.machine }}{{ end }}

{{/* Whether the run uses GPUs: "true" or nothing. */}}
{{- define "nebius.gpu" }}{{ if .Run.gpu }}true{{ end }}{{ end }}

{{/* Pods of the run: the machines of a GPU program; the launcher's own number for a program without GPUs, else one. */}}
{{- define "nebius.nodes" }}{{ .Run.nodes }}{{ end }}

{{/* GPUs of each machine that the run uses: those asked for, or all. */}}
{{- define "nebius.gpusPerNode" }}{{ .Run.gpusPerNode }}{{ end }}

{{/* Processes of the run, one for each GPU. */}}
{{- define "nebius.worldSize" }}{{ .Run.worldSize }}{{ end }}

{{/* Copies of the model that train side by side; cut to a whole number. */}}
{{- define "nebius.dataParallel" }}{{ .Run.dataParallel }}{{ end }}

{{/* Samples of one step; "2/gpu" grows with the run. */}}
{{- define "nebius.globalBatch" }}{{ .Run.globalBatch }}{{ end }}
