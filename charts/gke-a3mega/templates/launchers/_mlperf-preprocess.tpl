{{/* mlperf-preprocess: Makes the MLPerf benchmark's train.npy and validation.npy from the downloaded GovReport data set */}}
{{- define "gke-a3mega.launcher.mlperf-preprocess.args" }}
{{- $program := (get .Values.launchers "mlperf-llama2-lora").program | default (get (include "gke-a3mega.launchers" . | fromYaml) "mlperf-llama2-lora").program }}
- {{ .Values.data.directory | toJson }}
- {{ printf "%s/scripts" (dir $program) | toJson }}
{{- end }}
