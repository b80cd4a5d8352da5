{{/* mlperf-preprocess: Makes the MLPerf benchmark's train.npy and validation.npy from the downloaded GovReport data set */}}
{{- define "gke-a4x.launcher.mlperf-preprocess.args" }}
{{- $program := (get .Values.launchers "mlperf-llama2-lora").program | default (get (include "gke-a4x.launchers" . | fromYaml) "mlperf-llama2-lora").program }}
- {{ .Values.data.directory | toJson }}
- {{ printf "%s/scripts" (dir $program) | toJson }}
{{- end }}
