{{/* Name of the run: the release's name and a digest of everything it runs. */}}
{{- define "gke-a3high.run" }}{{ .Run.name }}{{ end }}

{{/* The directory that all runs of a release share, so that a restarted or changed run finds its checkpoints. */}}
{{- define "gke-a3high.home" }}{{ .Run.home }}{{ end }}

{{/* The chosen launcher, as JSON; its values win over its defaults. */}}
{{- define "gke-a3high.launcher" }}{{ toJson .Run.launcher }}{{ end }}

{{/* The machine type of the run, as JSON. */}}
{{- define "gke-a3high.machine" }}{{ toJson .Run.machine }}{{ end }}

{{/* Whether the run uses GPUs: "true" or nothing. */}}
{{- define "gke-a3high.gpu" }}{{ if .Run.gpu }}true{{ end }}{{ end }}

{{/* Pods of the run: the machines of a GPU program; the launcher's own number for a program without GPUs, else one. */}}
{{- define "gke-a3high.nodes" }}{{ .Run.nodes }}{{ end }}

{{/* GPUs of each machine that the run uses: those asked for, or all. */}}
{{- define "gke-a3high.gpusPerNode" }}{{ .Run.gpusPerNode }}{{ end }}

{{/* Processes of the run, one for each GPU. */}}
{{- define "gke-a3high.worldSize" }}{{ .Run.worldSize }}{{ end }}

{{/* Copies of the model that train side by side; cut to a whole number. */}}
{{- define "gke-a3high.dataParallel" }}{{ .Run.dataParallel }}{{ end }}

{{/* Samples of one step; "2/gpu" grows with the run. */}}
{{- define "gke-a3high.globalBatch" }}{{ .Run.globalBatch }}{{ end }}
