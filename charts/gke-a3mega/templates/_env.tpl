{{/* Variables of the program, each name once: fragments < trackers < launcher < user. */}}
{{- define "gke-a3mega.env" -}}
{{- $env := dict }}
{{- $own := include (printf "gke-a3mega.launcher.%s.env" .Values.launcher) . }}
{{- range list (include "gke-a3mega.slot.env" .) (include "gke-a3mega.trackers" .) $own }}
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
  value: {{ .Run.nodes | quote }}
- name: NODE_RANK
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['batch.kubernetes.io/job-completion-index']
{{- if .Run.gpu }}
- name: GPUS_PER_NODE
  value: {{ .Run.gpusPerNode | quote }}
- name: MASTER_ADDR
  value: {{ include "gke-a3mega.rendezvous" . }}
- {name: MASTER_PORT, value: "6002"}
- name: RUN_DIRECTORY
  value: {{ .Run.directory | quote }}
- name: CHECKPOINT_DIRECTORY
  value: {{ printf "%s/checkpoints" .Run.home | quote }}
{{- if and .Run.mustProgress (include "gke-a3mega.attempt" .) }}
- name: RESTART_ATTEMPT
  valueFrom:
    fieldRef:
      fieldPath: {{ include "gke-a3mega.attempt" . }}
{{- end }}
{{- if .Run.watched }}
{{- /* Helm would see an empty value as a change in each upgrade. */}}
{{- with .Values.run.hangMinutes }}
- name: HANG_SECONDS
  value: {{ mul 60 . | quote }}
{{- end }}
{{- with .Values.evaluation.batches }}
- name: EVALUATION_BATCHES
  value: {{ int64 . | quote }}
{{- end }}
{{- with .Values.run.stepLine }}
- name: STEP_LINE
  value: {{ include "gke-a3mega.literal" . }}
{{- end }}
- name: GRACE_SECONDS
  value: {{ int64 .Values.run.gracePeriodSeconds | quote }}
{{- end }}
{{- if .Run.staged }}
- name: STAGED_DATA
  {{- $paths := list }}
  {{- range .Run.data }}{{ $paths = append $paths .path }}{{ end }}
  value: {{ join "\n" $paths | quote }}
{{- end }}
{{- end }}
{{- if not .Run.gpu }}
# Its own user has no home in the image, and may have no name there.
- {name: HOME, value: /tmp}
- {name: USER, value: data}
{{- end }}
{{- if .Run.gpu }}
{{- /* gpudirect */}}
- {name: GLOO_SOCKET_IFNAME, value: eth0}
- {name: NCCL_SOCKET_IFNAME, value: eth0}
- {name: NCCL_DEBUG, value: WARN}
- {name: NCCL_P2P_NET_CHUNKSIZE, value: "524288"}
- {name: NCCL_P2P_PCI_CHUNKSIZE, value: "524288"}
- {name: NCCL_P2P_NVL_CHUNKSIZE, value: "1048576"}
- {name: NCCL_CROSS_NIC, value: "0"}
- {name: NCCL_NET_GDR_LEVEL, value: PIX}
# What the plugin's version was tuned with.
{{- $version := get (include "gke-a3mega.gpudirectVersions" . | fromYaml) .Values.network.pluginVersion | default dict }}
{{- range $name, $value := $version.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- /* gpudirect-tcpxo */}}
# The profile of the plugin ends the start when it is not set; all else of the plugin lies there too.
- {name: NCCL_LIB_DIR, value: /usr/local/nccl-plugin/lib64}
# NVIDIA's images preset another plugin from NeMo 26.08 on.
- {name: NCCL_NET_PLUGIN, value: /usr/local/nccl-plugin/lib64/libnccl-net.so}
# NCCL_PROTO is the plugin's own to set, in its profile: it differs from version to version.
- {name: NCCL_MIN_NCHANNELS, value: "4"}
- {name: NCCL_BUFFSIZE, value: "8388608"}
- {name: NCCL_FASTRAK_CTRL_DEV, value: eth0}
- {name: NCCL_FASTRAK_IFNAME, value: "eth1,eth2,eth3,eth4,eth5,eth6,eth7,eth8"}
- {name: NCCL_FASTRAK_NUM_FLOWS, value: "2"}
- {name: NCCL_FASTRAK_ENABLE_CONTROL_CHANNEL, value: "0"}
- {name: NCCL_FASTRAK_ENABLE_HOTPATH_LOGGING, value: "0"}
- {name: NCCL_FASTRAK_USE_SNAP, value: "1"}
- {name: NCCL_FASTRAK_USE_LLCM, value: "1"}
- {name: NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY, value: /dev/aperture_devices}
- {name: NCCL_TUNER_PLUGIN, value: libnccl-tuner.so}
- {name: NCCL_TUNER_CONFIG_PATH, value: /usr/local/nccl-plugin/lib64/a3plus_tuner_config.textproto}
- {name: NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE, value: /usr/local/nccl-plugin/lib64/a3plus_guest_config.textproto}
{{- end }}
{{- end }}

{{/*
Where a run that trains is logged. W&B reads here what its program leaves open, and the run's id with all programs (wandb
0.31.0, sdk/wandb_init.py and wandb_settings.py).
*/}}
{{- define "gke-a3mega.trackers" }}
{{- if eq .Run.launcher.task "train" }}
{{- $wandb := .Values.wandb }}
{{- with $wandb.project }}
- name: WANDB_PROJECT
  value: {{ quote . }}
- name: WANDB_NAME
  value: {{ $.Run.name }}
- name: WANDB_RUN_GROUP
  value: {{ printf "%s/%s" $.Release.Namespace $.Release.Name | quote }}
- name: WANDB_MODE
  value: {{ $wandb.mode }}
- name: WANDB_DIR
  value: {{ $.Run.directory | quote }}
{{- if and $.Values.checkpoint.enabled (eq $wandb.mode "online") }}
# A restart continues from the last checkpoint. Without checkpoints it begins again, and W&B, which drops steps that it
# has, gets a run of its own.
- name: WANDB_RUN_ID
  value: {{ $.Run.name }}
- {name: WANDB_RESUME, value: allow}
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
