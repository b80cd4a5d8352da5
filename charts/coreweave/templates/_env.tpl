{{/* Variables of the program, each name once: fragments < trackers < launcher < user. */}}
{{- define "coreweave.env" -}}
{{- $env := dict }}
{{- $layers := list (include "coreweave.slot.env" .) (include "coreweave.trackers" .) }}
{{- if eq .Values.launcher "megatron-lm" }}
{{- $layers = append $layers (include "coreweave.launcher.megatron-lm.env" .) }}
{{- end }}
{{- if eq .Values.launcher "megatron-bridge" }}
{{- $layers = append $layers (include "coreweave.launcher.megatron-bridge.env" .) }}
{{- end }}
{{- if eq .Values.launcher "nemo-1" }}
{{- $layers = append $layers (include "coreweave.launcher.nemo-1.env" .) }}
{{- end }}
{{- if eq .Values.launcher "automodel" }}
{{- $layers = append $layers (include "coreweave.launcher.automodel.env" .) }}
{{- end }}
{{- if eq .Values.launcher "torchtitan" }}
{{- $layers = append $layers (include "coreweave.launcher.torchtitan.env" .) }}
{{- end }}
{{- if eq .Values.launcher "torchrun" }}
{{- $layers = append $layers (include "coreweave.launcher.torchrun.env" .) }}
{{- end }}
{{- if eq .Values.launcher "mlperf-llama2-lora" }}
{{- $layers = append $layers (include "coreweave.launcher.mlperf-llama2-lora.env" .) }}
{{- end }}
{{- if eq .Values.launcher "pile-dataprep" }}
{{- $layers = append $layers (include "coreweave.launcher.pile-dataprep.env" .) }}
{{- end }}
{{- if eq .Values.launcher "nccl-test" }}
{{- $layers = append $layers (include "coreweave.launcher.nccl-test.env" .) }}
{{- end }}
{{- range $layers }}
{{- range . | fromYamlArray }}{{ $_ := set $env .name . }}{{ end }}
{{- end }}
{{- range $name, $value := .Values.env }}{{ $_ := set $env $name (dict "value" $value) }}{{ end }}
{{- range $name, $key := .Values.secretEnv }}
{{- $_ := set $env $name (dict "valueFrom" (dict "secretKeyRef" (dict "name" $key.secretName "key" $key.key))) }}
{{- end }}
{{- range $name, $entry := $env }}
- name: {{ regexMatch "(?i)^(y|n|yes|no|on|off|true|false|null)$" $name | ternary (quote $name) $name }}
{{- if hasKey $entry "value" }}
  value: {{ include "coreweave.literal" $entry.value }}
{{- else }}
  valueFrom: {{- toYaml $entry.valueFrom | nindent 4 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "coreweave.slot.env" }}
- name: NNODES
  value: {{ include "coreweave.nodes" . | quote }}
- name: NODE_RANK
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['batch.kubernetes.io/job-completion-index']
{{- if include "coreweave.gpu" . }}
- name: GPUS_PER_NODE
  value: {{ include "coreweave.gpusPerNode" . | quote }}
- name: MASTER_ADDR
  value: {{ include "coreweave.rendezvous" . }}
- name: MASTER_PORT
  value: "6002"
- name: RUN_DIRECTORY
  value: {{ include "coreweave.runDirectory" . | quote }}
- name: CHECKPOINT_DIRECTORY
  value: {{ printf "%s/checkpoints" (include "coreweave.home" .) | quote }}
{{- if include "coreweave.watched" . }}
- name: HANG_SECONDS
  value: {{ mul 60 .Values.run.hangMinutes | quote }}
- name: STEP_LINE
  value: {{ include "coreweave.literal" .Values.run.stepLine }}
- name: GRACE_SECONDS
  value: {{ int64 .Values.run.gracePeriodSeconds | quote }}
{{- end }}
{{- if include "coreweave.staged" . }}
- name: STAGED_DATA
  {{- $paths := list }}
  {{- range include "coreweave.storedData" . | fromYamlArray }}{{ $paths = append $paths .path }}{{ end }}
  value: {{ join "\n" $paths | quote }}
{{- end }}
{{- end }}
{{- if not (include "coreweave.gpu" .) }}
# Its own user has no home in the image, and may have no name there.
- name: HOME
  value: /tmp
- name: USER
  value: data
{{- end }}
{{- $launcher := include "coreweave.launcher" . | fromJson }}
{{- if eq $launcher.processes "workers" }}
- name: WORKERS
  value: {{ $launcher.workers | default 1 | int64 | quote }}
{{- end }}
{{- if include "coreweave.gpu" . }}
{{- /* infiniband */}}
- name: NCCL_SOCKET_IFNAME
  value: eth0
# NCCL's own InfiniBand, whatever plugin an image presets, as NVIDIA's do from NeMo 26.08 on.
- name: NCCL_NET_PLUGIN
  value: none
- name: NCCL_DEBUG
  value: WARN
{{- if include "coreweave.infiniband" . }}
{{- $fabric := include "coreweave.infinibandFabric" . | fromYaml }}
{{- with .Values.network.adapters | default $fabric.names }}
- name: NCCL_IB_HCA
  value: {{ . | quote }}
{{- end }}
{{- with .Values.network.topologyFile | default $fabric.topologyFile }}
- name: NCCL_TOPO_FILE
  value: {{ . | quote }}
{{- end }}
# By default NCCL falls back to TCP silently; with this variable it stops if InfiniBand is missing.
- name: NCCL_NET
  value: IB
# What the vendor measured for the machine type.
{{- range $name, $value := $fabric.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- else if eq .Values.network.interface "tcp" }}
- name: NCCL_NET
  value: Socket
{{- end }}
{{- end }}
{{- end }}

{{/*
Where a run that trains is logged. W&B reads here what its program leaves open, and the run's id with all programs (wandb
0.31.0, sdk/wandb_init.py and wandb_settings.py).
*/}}
{{- define "coreweave.trackers" }}
{{- if eq (include "coreweave.launcher" . | fromJson).task "train" }}
{{- $wandb := .Values.wandb }}
{{- with $wandb.project }}
- name: WANDB_PROJECT
  value: {{ quote . }}
- name: WANDB_NAME
  value: {{ include "coreweave.run" $ }}
- name: WANDB_RUN_GROUP
  value: {{ printf "%s/%s" $.Release.Namespace $.Release.Name | quote }}
- name: WANDB_MODE
  value: {{ $wandb.mode }}
- name: WANDB_DIR
  value: {{ include "coreweave.runDirectory" $ | quote }}
{{- if and $.Values.checkpoint.enabled (eq $wandb.mode "online") }}
# A restart continues from the last checkpoint. Without checkpoints it begins again, and W&B, which drops steps that it
# has, gets a run of its own.
- name: WANDB_RUN_ID
  value: {{ include "coreweave.run" $ }}
- name: WANDB_RESUME
  value: allow
{{- end }}
{{- with $wandb.entity }}
- name: WANDB_ENTITY
  value: {{ quote . }}
{{- end }}
{{- with $wandb.baseUrl }}
- name: WANDB_BASE_URL
  value: {{ quote . }}
{{- end }}
{{- end }}
{{- with .Values.mlflow.experiment }}
- name: MLFLOW_EXPERIMENT_NAME
  value: {{ quote . }}
- name: MLFLOW_TRACKING_URI
  value: {{ quote $.Values.mlflow.uri }}
{{- end }}
{{- end }}
{{- end }}
