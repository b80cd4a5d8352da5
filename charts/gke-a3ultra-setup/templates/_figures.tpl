{{/* What templates of fragments ask for, as .Run: here of every program on GPUs, as a queue and a driver do not know more. */}}
{{- define "gke-a3ultra-setup.figures" -}}
{{- $machine := get (.Files.Get "files/machines.yaml" | fromYaml) .Values.machineType }}
{{- $gpus := .Values.gpusPerNode | default $machine.gpus | int64 }}
{{- $launcher := dict "task" "train" "processes" "gpu" "defaults" dict }}
{{- $_ := set . "Run" (dict "machine" $machine "gpusPerNode" $gpus "nodes" (int64 .Values.nodes) "pods" (int64 .Values.nodes) "gpu" true "launcher" $launcher) }}
{{- end }}
