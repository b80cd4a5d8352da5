{{/* Virtual functions of the GPUs that the run uses; each GPU has its own share. */}}
{{- define "oke-h100-setup.roceFunctions" -}}
{{- $machine := .Run.machine }}
{{- div (mul ($machine.fabric.virtualFunctions | default 0) .Run.gpusPerNode) $machine.gpus }}
{{- end }}
