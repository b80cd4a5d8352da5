{{/* The pod of the program: one for each machine of the run. */}}
{{- define "gke-a4x.pod" -}}
{{- $launcher := .Run.launcher -}}
metadata:
  labels:
    {{- include "gke-a4x.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $launcher.task }}
    run: {{ .Run.name }}
    {{- with include "gke-a4x.merge" (list (toYaml .Values.podLabels)) }}
    {{- . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: workload
    {{- with include "gke-a4x.merge" (list (toYaml .Values.podAnnotations) (include "gke-a4x.slot.podAnnotations" .)) }}
    {{- . | nindent 4 }}
    {{- end }}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: {{ .Values.run.gracePeriodSeconds | int64 }}
  {{- include "gke-a4x.account" . | nindent 2 }}
  securityContext:
    {{- include "gke-a4x.podSecurityContext" . | trim | nindent 4 }}
  {{- with include "gke-a4x.merge" (list (toYaml .Values.nodeSelector) (include "gke-a4x.slot.nodeSelector" .)) }}
  nodeSelector:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with concat (include "gke-a4x.tolerations" . | fromYamlArray) .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  affinity:
    {{- .Run.affinity | nindent 4 }}
  volumes:
    {{- include "gke-a4x.volumes" . | trim | nindent 4 }}
  {{- with include "gke-a4x.slot.resourceClaims" . | fromYamlArray }}
  resourceClaims:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "gke-a4x.initContainers" . | trim }}
  initContainers:
    {{- . | nindent 4 }}
  {{- end }}
  containers:
    - name: workload
      image: {{ $launcher.image | quote }}
      imagePullPolicy: {{ .Values.imagePullPolicy }}
      command: [bash, /etc/chartgen/start.sh]
      args:
        {{- if hasPrefix "-m " .Run.launcher.program }}
        - "-m"
        {{- end }}
        - {{ trimPrefix "-m " .Run.launcher.program | include "gke-a4x.literal" }}
        {{- range include (printf "gke-a4x.launcher.%s.args" .Values.launcher) . | fromYamlArray }}
        - {{ include "gke-a4x.literal" . }}
        {{- end }}
        {{- range .Run.launcher.args }}
        - {{ include "gke-a4x.filled" (list $ .) | include "gke-a4x.literal" }}
        {{- end }}
      env:
        {{- .Run.env | nindent 8 }}
      {{- if .Run.gpu }}
      ports:
        - name: rendezvous
          containerPort: 6002
        {{- if .Run.exporter }}
        - name: metrics
          containerPort: {{ .Values.run.metricsPort | int64 }}
        {{- end }}
      {{- end }}
      resources:
        {{- $gpus := include "gke-a4x.slot.resourceLimits" . | fromYaml }}
        {{- $resources := $launcher.resources | default (dict) }}
        {{- with merge (dict) $gpus ($resources.requests | default (dict)) }}
        requests:
          {{- range $name, $quantity := . }}
          {{ $name }}: {{ $quantity | quote }}
          {{- end }}
        {{- end }}
        {{- with merge (dict) $gpus ($resources.limits | default (dict)) }}
        limits:
          {{- range $name, $quantity := . }}
          {{ $name }}: {{ $quantity | quote }}
          {{- end }}
        {{- end }}
        {{- with include "gke-a4x.slot.resourceClaims" . | fromYamlArray }}
        claims:
          {{- range . }}
          - name: {{ .name }}
          {{- end }}
        {{- end }}
      securityContext:
        {{- include "gke-a4x.securityContext" . | nindent 8 }}
      volumeMounts:
        {{- include "gke-a4x.volumeMounts" . | trim | nindent 8 }}

    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* Maps that fragments fill; the user's values of the same name win over them. */}}
{{- define "gke-a4x.slot.podAnnotations" -}}
{{- if .Run.gpu }}
{{- /* rdma-gib */}}
{{- if eq .Values.network.mode "annotation" }}
networking.gke.io/default-interface: eth0
networking.gke.io/interfaces: {{ include "gke-a4x.gibInterfaces" . | quote }}
{{- end }}
{{- /* rdma-claims */}}
{{- if eq .Values.network.mode "claims" }}
# Makes another claim another run.
checksum/rdma: {{ include "gke-a4x.rdmaClaim" . | sha256sum }}
{{- end }}
{{- end }}
{{- /* storage-gcs */}}
{{- range .Values.storage }}
{{- if hasPrefix "gs://" .from }}
# GKE adds the FUSE sidecar; "0" lifts its limits on CPU, memory and disk.
gke-gcsfuse/volumes: "true"
gke-gcsfuse/cpu-limit: "0"
gke-gcsfuse/memory-limit: "0"
gke-gcsfuse/ephemeral-storage-limit: "0"
{{- break }}
{{- end }}
{{- end }}
{{- if .Run.gpu }}
{{- /* kueue */}}
{{- with .Values.topology }}
{{- if eq .mode "unconstrained" }}
kueue.x-k8s.io/podset-unconstrained-topology: "true"
{{- else if .mode }}
kueue.x-k8s.io/podset-{{ .mode }}-topology: {{ .level | quote }}
{{- end }}
{{- if .sliceSize }}
kueue.x-k8s.io/podset-slice-required-topology: {{ .sliceLevel | quote }}
kueue.x-k8s.io/podset-slice-size: {{ .sliceSize | int64 | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- define "gke-a4x.slot.nodeSelector" -}}
{{- if .Run.gpu }}
{{- /* instance-type */}}
node.kubernetes.io/instance-type: {{ .Values.machineType }}
{{- end }}
{{- end }}
{{- define "gke-a4x.slot.securityContext" -}}
{{- if .Run.gpu }}
{{- /* rdma-gib */}}
{{- if include "gke-a4x.gibInImage" . }}
capabilities:
  add: [IPC_LOCK]
{{- end }}
{{- end }}
{{- end }}
{{- define "gke-a4x.slot.labels" -}}
{{- if .Run.gpu }}
{{- /* kueue */}}
{{- if .Values.queue.name }}
kueue.x-k8s.io/queue-name: {{ .Values.queue.name | quote }}
{{- with .Values.queue.priorityClass }}
kueue.x-k8s.io/priority-class: {{ . | quote }}
{{- end }}
{{- with .Values.run.deadlineSeconds }}
kueue.x-k8s.io/max-exec-time-seconds: {{ . | int64 | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Devices that fragments claim for the pod; the program's container uses all of them. */}}
{{- define "gke-a4x.slot.resourceClaims" -}}
{{- if .Run.gpu }}
{{- /* compute-domain */}}
{{- if include "gke-a4x.computeDomain" . }}
- name: compute-domain-channel
  resourceClaimTemplateName: {{ .Run.name }}-channel
{{- end }}
{{- /* rdma-claims */}}
{{- if eq .Values.network.mode "claims" }}
- name: rdma
  resourceClaimTemplateName: {{ .Run.name }}-rdma
{{- end }}
{{- end }}
{{- end }}


{{/* Tolerations that fragments need. The queue's flavor carries the same ones, byte for byte, or Helm and Kueue clash. */}}
{{- define "gke-a4x.tolerations" -}}
{{- if .Run.gpu }}
{{- /* nvidia-gpu */}}
- key: nvidia.com/gpu
  operator: Exists
{{- end }}
{{- /* gke-nodes */}}
- key: cloud.google.com/impending-node-termination
  operator: Exists
{{- if .Run.gpu }}
{{- /* arm64-nodes */}}
- key: kubernetes.io/arch
  operator: Exists
{{- end }}
{{- end }}

{{/*
Affinity: the user's and the fragments', the nodes to avoid, and one rule of the chart's own: no pod of this run starts
while another run of the release still has pods, so that two runs never write to one checkpoint directory.
*/}}
{{- define "gke-a4x.affinity" -}}
{{- $affinity := include "gke-a4x.merge" (list (toYaml .Values.affinity)) | fromYaml }}
{{- $other := dict "topologyKey" "kubernetes.io/os" "labelSelector" (dict "matchExpressions" (list
  (dict "key" "app.kubernetes.io/instance" "operator" "In" "values" (list .Release.Name))
  (dict "key" "run" "operator" "Exists")
  (dict "key" "run" "operator" "NotIn" "values" (list .Run.name)))) }}
{{- $field := "requiredDuringSchedulingIgnoredDuringExecution" }}
{{- $anti := $affinity.podAntiAffinity | default (dict) }}
{{- $_ := set $anti $field (append (get $anti $field | default (list)) $other) }}
{{- $_ := set $affinity "podAntiAffinity" $anti }}
{{- with .Values.avoidNodes }}
{{- $nodes := $affinity.nodeAffinity | default (dict) }}
{{- $avoid := dict "key" "kubernetes.io/hostname" "operator" "NotIn" "values" . }}
{{- $terms := list }}
{{- /* A node fits if one of the terms does, so each gets the condition. */}}
{{- range dig $field "nodeSelectorTerms" (list (dict)) $nodes }}
{{- $terms = append $terms (merge (dict "matchExpressions" (append (.matchExpressions | default (list)) $avoid)) .) }}
{{- end }}
{{- $_ := set $nodes $field (dict "nodeSelectorTerms" $terms) }}
{{- $_ := set $affinity "nodeAffinity" $nodes }}
{{- end }}
{{- toYaml $affinity }}
{{- end }}
