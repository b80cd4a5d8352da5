{{/* Variables of the program, each name once: fragments < trackers < launcher < user. */}}
{{- define "gke-a3mega.env" -}}
{{- $env := dict }}
{{- $layers := list (include "gke-a3mega.slot.env" .) (include "gke-a3mega.trackers" .) }}
{{- if eq .Values.launcher "megatron-lm" }}
{{- $layers = append $layers (include "gke-a3mega.launcher.megatron-lm.env" .) }}
{{- end }}
{{- if eq .Values.launcher "megatron-bridge" }}
{{- $layers = append $layers (include "gke-a3mega.launcher.megatron-bridge.env" .) }}
{{- end }}
{{- if eq .Values.launcher "nemo-1" }}
{{- $layers = append $layers (include "gke-a3mega.launcher.nemo-1.env" .) }}
{{- end }}
{{- if eq .Values.launcher "automodel" }}
{{- $layers = append $layers (include "gke-a3mega.launcher.automodel.env" .) }}
{{- end }}
{{- if eq .Values.launcher "torchtitan" }}
{{- $layers = append $layers (include "gke-a3mega.launcher.torchtitan.env" .) }}
{{- end }}
{{- if eq .Values.launcher "torchrun" }}
{{- $layers = append $layers (include "gke-a3mega.launcher.torchrun.env" .) }}
{{- end }}
{{- if eq .Values.launcher "mlperf-llama2-lora" }}
{{- $layers = append $layers (include "gke-a3mega.launcher.mlperf-llama2-lora.env" .) }}
{{- end }}
{{- if eq .Values.launcher "pile-dataprep" }}
{{- $layers = append $layers (include "gke-a3mega.launcher.pile-dataprep.env" .) }}
{{- end }}
{{- if eq .Values.launcher "nccl-test" }}
{{- $layers = append $layers (include "gke-a3mega.launcher.nccl-test.env" .) }}
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
  value: {{ include "gke-a3mega.literal" $entry.value }}
{{- else }}
  valueFrom: {{- toYaml $entry.valueFrom | nindent 4 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gke-a3mega.slot.env" }}
- name: NNODES
  value: {{ include "gke-a3mega.nodes" . | quote }}
- name: NODE_RANK
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['batch.kubernetes.io/job-completion-index']
{{- if include "gke-a3mega.gpu" . }}
- name: GPUS_PER_NODE
  value: {{ include "gke-a3mega.gpusPerNode" . | quote }}
- name: MASTER_ADDR
  value: {{ include "gke-a3mega.rendezvous" . }}
- name: MASTER_PORT
  value: "6002"
- name: RUN_DIRECTORY
  value: {{ include "gke-a3mega.runDirectory" . | quote }}
- name: CHECKPOINT_DIRECTORY
  value: {{ printf "%s/checkpoints" (include "gke-a3mega.home" .) | quote }}
{{- if include "gke-a3mega.watched" . }}
- name: HANG_SECONDS
  value: {{ mul 60 .Values.run.hangMinutes | quote }}
- name: STEP_LINE
  value: {{ include "gke-a3mega.literal" .Values.run.stepLine }}
- name: GRACE_SECONDS
  value: {{ int64 .Values.run.gracePeriodSeconds | quote }}
{{- end }}
{{- if include "gke-a3mega.staged" . }}
- name: STAGED_DATA
  {{- $paths := list }}
  {{- range include "gke-a3mega.storedData" . | fromYamlArray }}{{ $paths = append $paths .path }}{{ end }}
  value: {{ join "\n" $paths | quote }}
{{- end }}
{{- end }}
{{- if not (include "gke-a3mega.gpu" .) }}
# Its own user has no home in the image, and may have no name there.
- name: HOME
  value: /tmp
- name: USER
  value: data
{{- end }}
{{- $launcher := include "gke-a3mega.launcher" . | fromJson }}
{{- if eq $launcher.processes "workers" }}
- name: WORKERS
  value: {{ $launcher.workers | default 1 | int64 | quote }}
{{- end }}
{{- if include "gke-a3mega.gpu" . }}
{{- /* gpudirect */}}
- name: GLOO_SOCKET_IFNAME
  value: eth0
- name: NCCL_SOCKET_IFNAME
  value: eth0
- name: NCCL_DEBUG
  value: WARN
- name: NCCL_P2P_NET_CHUNKSIZE
  value: "524288"
- name: NCCL_P2P_PCI_CHUNKSIZE
  value: "524288"
- name: NCCL_P2P_NVL_CHUNKSIZE
  value: "1048576"
- name: NCCL_CROSS_NIC
  value: "0"
- name: NCCL_NET_GDR_LEVEL
  value: PIX
# What the plugin's version was tuned with.
{{- range $name, $value := (include "gke-a3mega.gpudirectVersion" . | fromYaml).settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- /* gpudirect-tcpxo */}}
# The profile of the plugin ends the start when it is not set; all else of the plugin lies there too.
- name: NCCL_LIB_DIR
  value: /usr/local/nccl-plugin/lib64
# NVIDIA's images preset another plugin from NeMo 26.08 on.
- name: NCCL_NET_PLUGIN
  value: /usr/local/nccl-plugin/lib64/libnccl-net.so
# NCCL_PROTO is the plugin's own to set, in its profile: it differs from version to version.
- name: NCCL_MIN_NCHANNELS
  value: "4"
- name: NCCL_BUFFSIZE
  value: "8388608"
- name: NCCL_FASTRAK_CTRL_DEV
  value: eth0
- name: NCCL_FASTRAK_IFNAME
  value: eth1,eth2,eth3,eth4,eth5,eth6,eth7,eth8
- name: NCCL_FASTRAK_NUM_FLOWS
  value: "2"
- name: NCCL_FASTRAK_ENABLE_CONTROL_CHANNEL
  value: "0"
- name: NCCL_FASTRAK_ENABLE_HOTPATH_LOGGING
  value: "0"
- name: NCCL_FASTRAK_USE_SNAP
  value: "1"
- name: NCCL_FASTRAK_USE_LLCM
  value: "1"
- name: NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY
  value: /dev/aperture_devices
- name: NCCL_TUNER_PLUGIN
  value: libnccl-tuner.so
- name: NCCL_TUNER_CONFIG_PATH
  value: /usr/local/nccl-plugin/lib64/a3plus_tuner_config.textproto
- name: NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE
  value: /usr/local/nccl-plugin/lib64/a3plus_guest_config.textproto
{{- end }}
{{- end }}

{{/*
Where a run that trains is logged. W&B reads here what its program leaves open, and the run's id with all programs (wandb
0.31.0, sdk/wandb_init.py and wandb_settings.py).
*/}}
{{- define "gke-a3mega.trackers" }}
{{- if eq (include "gke-a3mega.launcher" . | fromJson).task "train" }}
{{- $wandb := .Values.wandb }}
{{- with $wandb.project }}
- name: WANDB_PROJECT
  value: {{ quote . }}
- name: WANDB_NAME
  value: {{ include "gke-a3mega.run" $ }}
- name: WANDB_RUN_GROUP
  value: {{ printf "%s/%s" $.Release.Namespace $.Release.Name | quote }}
- name: WANDB_MODE
  value: {{ $wandb.mode }}
- name: WANDB_DIR
  value: {{ include "gke-a3mega.runDirectory" $ | quote }}
{{- if and $.Values.checkpoint.enabled (eq $wandb.mode "online") }}
# A restart continues from the last checkpoint. Without checkpoints it begins again, and W&B, which drops steps that it
# has, gets a run of its own.
- name: WANDB_RUN_ID
  value: {{ include "gke-a3mega.run" $ }}
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
