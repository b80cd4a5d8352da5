{{/*
mlperf-preprocess: Makes the MLPerf benchmark's train.npy and validation.npy from the downloaded GovReport data set.
What the templates of a run include by these names; empty = this launcher needs none.
*/}}
{{- define "eks-p5.launcher.mlperf-preprocess.config" }}{{ end }}
{{- define "eks-p5.launcher.mlperf-preprocess.args" }}
{{- $default := (.Files.Get "files/launchers/mlperf-llama2-lora/launcher.yaml" | fromYaml).program }}
{{- $program := (get .Values.launchers "mlperf-llama2-lora").program | default $default }}
- {{ .Values.data.directory | toJson }}
- {{ printf "%s/scripts" (dir $program) | toJson }}
{{- end }}
{{- define "eks-p5.launcher.mlperf-preprocess.env" }}{{ end }}
{{- define "eks-p5.launcher.mlperf-preprocess.mounts" }}{{ end }}
{{- define "eks-p5.launcher.mlperf-preprocess.files" }}{{ end }}
{{- define "eks-p5.launcher.mlperf-preprocess.beforeLaunch" }}{{ end }}
{{- define "eks-p5.launcher.mlperf-preprocess.launch" }}{{ end }}
{{- define "eks-p5.launcher.mlperf-preprocess.beforeRank" }}{{ end }}
{{- define "eks-p5.launcher.mlperf-preprocess.programs" }}
{{ base .Run.launcher.program }}: {{ .Files.Get "files/launchers/mlperf-preprocess/program.sh" | trim | toJson }}
{{- end }}
