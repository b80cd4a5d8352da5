{{/* Variables of the program, each name once: fragments < trackers < launcher < user. */}}
{{- define "gke-a3high.env" -}}
{{- $env := dict }}
{{- $own := include (printf "gke-a3high.launcher.%s.env" .Values.launcher) . }}
{{- range list (include "gke-a3high.slot.env" .) (include "gke-a3high.trackers" .) $own }}
{{- range . | fromYamlArray }}{{ $_ := set $env .name . }}{{ end }}
{{- end }}
{{- range $name, $value := .Values.env }}{{ $_ := set $env $name (dict "value" $value) }}{{ end }}
{{- range $name, $key := .Values.secretEnv }}
{{- $_ := set $env $name (dict "valueFrom" (dict "secretKeyRef" (dict "name" $key.secretName "key" $key.key))) }}
{{- end }}
{{- range $name, $entry := $env }}
- name: {{ regexMatch "(?i)^(y|n|yes|no|on|off|true|false|null)$" $name | ternary (quote $name) $name }}
{{- if hasKey $entry "value" }}
  value: {{ include "gke-a3high.literal" $entry.value }}
{{- else }}
  valueFrom: {{- toYaml $entry.valueFrom | nindent 4 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gke-a3high.slot.env" }}
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
  value: {{ include "gke-a3high.rendezvous" . }}
- {name: MASTER_PORT, value: "6002"}
- name: RUN_DIRECTORY
  value: {{ .Run.directory | quote }}
- name: CHECKPOINT_DIRECTORY
  value: {{ printf "%s/checkpoints" .Run.home | quote }}
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
  value: {{ include "gke-a3high.literal" . }}
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
{{- $version := get (include "gke-a3high.gpudirectVersions" . | fromYaml) .Values.network.pluginVersion | default dict }}
{{- range $name, $value := $version.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- /* gpudirect-tcpx */}}
# NVIDIA's images preset another plugin from NeMo 26.08 on. A name is found by every NCCL: before 2.21 none takes a path.
- {name: NCCL_NET_PLUGIN, value: tcpx}
- {name: NCCL_PROTO, value: Simple}
- {name: NCCL_DYNAMIC_CHUNK_SIZE, value: "524288"}
- {name: NCCL_P2P_PXN_LEVEL, value: "0"}
- {name: NCCL_SOCKET_NTHREADS, value: "1"}
- {name: NCCL_NSOCKS_PERTHREAD, value: "4"}
- {name: NCCL_GPUDIRECTTCPX_CTRL_DEV, value: eth0}
- {name: NCCL_GPUDIRECTTCPX_SOCKET_IFNAME, value: "eth1,eth2,eth3,eth4"}
- {name: NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX, value: /run/tcpx}
# The processors next to each interface, those that send and those that receive.
- {name: NCCL_GPUDIRECTTCPX_TX_BINDINGS, value: "eth1:8-21,112-125;eth2:8-21,112-125;eth3:60-73,164-177;eth4:60-73,164-177"}
- {name: NCCL_GPUDIRECTTCPX_RX_BINDINGS, value: "eth1:22-35,126-139;eth2:22-35,126-139;eth3:74-87,178-191;eth4:74-87,178-191"}
{{- end }}
{{- end }}

{{/*
Where a run that trains is logged. W&B reads here what its program leaves open, and the run's id with all programs (wandb
0.31.0, sdk/wandb_init.py and wandb_settings.py).
*/}}
{{- define "gke-a3high.trackers" }}
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
