{{/*
torchrun: Any program that torchrun or accelerate starts, with arguments of its own.
What the templates of a run include by these names; empty = this launcher needs none.
*/}}
{{- define "gke-a4.launcher.torchrun.config" }}{{ end }}
{{- define "gke-a4.launcher.torchrun.args" }}{{ end }}
{{- define "gke-a4.launcher.torchrun.env" }}
{{- with (get .Values.launchers "torchrun").directory }}
- name: PROGRAM_DIRECTORY
  value: {{ quote . }}
{{- end }}
{{- end }}
{{- define "gke-a4.launcher.torchrun.files" }}
{{ toJson (get .Values.launchers "torchrun").files }}
{{- end }}
{{- define "gke-a4.launcher.torchrun.beforeLaunch" }}
{{ .Files.Get "files/launchers/torchrun/beforeLaunch.sh" }}
{{- end }}
{{- define "gke-a4.launcher.torchrun.launch" }}
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
{{- end }}
{{- define "gke-a4.launcher.torchrun.beforeRank" }}
{{ .Files.Get "files/launchers/torchrun/beforeRank.sh" }}
{{- end }}
{{- define "gke-a4.launcher.torchrun.programs" }}{{ end }}
