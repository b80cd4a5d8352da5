{{/* Variables of the program, each name once: fragments < trackers < launcher < user. */}}
{{- define "gke-a3ultra.env" -}}
{{- $env := dict }}
{{- $own := include (printf "gke-a3ultra.launcher.%s.env" .Values.launcher) . }}
{{- range list (include "gke-a3ultra.slot.env" .) (include "gke-a3ultra.trackers" .) $own }}
{{- range . | fromYamlArray }}{{ $_ := set $env .name . }}{{ end }}
{{- end }}
{{- range $name, $value := .Values.env }}{{ $_ := set $env $name (dict "value" $value) }}{{ end }}
{{- range $name, $key := .Values.secretEnv }}
{{- $_ := set $env $name (dict "valueFrom" (dict "secretKeyRef" (dict "name" $key.secretName "key" $key.key))) }}
{{- end }}
{{- range $name, $entry := $env }}
- name: {{ regexMatch "(?i)^(y|n|yes|no|on|off|true|false|null)$" $name | ternary (quote $name) $name }}
{{- if hasKey $entry "value" }}
  value: {{ include "gke-a3ultra.literal" $entry.value }}
{{- else }}
  valueFrom: {{- toYaml $entry.valueFrom | nindent 4 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gke-a3ultra.slot.env" }}
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
  value: {{ include "gke-a3ultra.rendezvous" . }}
- {name: MASTER_PORT, value: "6002"}
- name: RUN_DIRECTORY
  value: {{ .Run.directory | quote }}
- name: CHECKPOINT_DIRECTORY
  value: {{ printf "%s/checkpoints" .Run.home | quote }}
{{- if and .Run.mustProgress (include "gke-a3ultra.attempt" .) }}
- name: RESTART_ATTEMPT
  valueFrom:
    fieldRef:
      fieldPath: {{ include "gke-a3ultra.attempt" . }}
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
  value: {{ include "gke-a3ultra.literal" . }}
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
{{- /* rdma-gib */}}
- {name: GLOO_SOCKET_IFNAME, value: eth0}
- {name: NCCL_SOCKET_IFNAME, value: eth0}
- {name: NCCL_DEBUG, value: WARN}
# By default NCCL falls back to TCP silently; with NCCL_NET it stops if the plugin is missing.
- {name: NCCL_NET, value: gIB}
# Images preset another plugin or none. This is the name by which NCCL looks for a plugin when the variable is not set.
# The plugin's other settings are in its script.
- {name: NCCL_NET_PLUGIN, value: /usr/local/gib/lib64/libnccl-net.so}
{{- end }}
{{- end }}

{{/*
Where a run that trains is logged. W&B reads here what its program leaves open, and the run's id with all programs (wandb
0.31.0, sdk/wandb_init.py and wandb_settings.py).
*/}}
{{- define "gke-a3ultra.trackers" }}
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
