{{/* mlperf-preprocess: Makes the MLPerf benchmark's train.npy and validation.npy from the downloaded GovReport data set */}}
{{- define "oke-h100.launcher.mlperf-preprocess.args" }}
{{- $program := (get .Values.launchers "mlperf-llama2-lora").program | default (get (include "oke-h100.launchers" . | fromYaml) "mlperf-llama2-lora").program }}
- {{ .Values.data.directory | toJson }}
- {{ printf "%s/scripts" (dir $program) | toJson }}
{{- end }}
