{{- $own := get .Values.launchers "torchrun" }}
{{- if eq $own.starter "accelerate" }}
{{- $multi := gt .Run.worldSize 1 }}
{{- range $own.starterArgs }}
{{- if regexMatch "^--(use[-_](fsdp|deepspeed|megatron[-_]lm)|config[-_]file)" . }}{{ $multi = false }}{{ end }}
{{- end }}
# Accelerate counts the processes of all machines. One kind of run can be asked for, here or in its own file.
launch=(
  accelerate launch
  --num_machines="$NNODES" --num_processes="$((NNODES * GPUS_PER_NODE))" --machine_rank="$NODE_RANK"
  --main_process_ip="$MASTER_ADDR" --main_process_port="$MASTER_PORT"
{{- if $multi }} --multi_gpu{{ end }}
{{- range $own.starterArgs }}
  {{ squote . }}
{{- end }}
)
{{- end }}
