{{/* The pod of the program: one for each machine of the run. */}}
{{- define "oke-h100.pod" -}}
{{- $launcher := .Run.launcher -}}
metadata:
  labels:
    {{- include "oke-h100.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $launcher.task }}
    run: {{ .Run.name }}
    {{- with include "oke-h100.merge" (list (toYaml .Values.podLabels)) }}
    {{- . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: workload
    {{- with include "oke-h100.merge" (list (toYaml .Values.podAnnotations) (include "oke-h100.slot.podAnnotations" .)) }}
    {{- . | nindent 4 }}
    {{- end }}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: {{ .Values.run.gracePeriodSeconds | int64 }}
  {{- include "oke-h100.account" . | nindent 2 }}
  securityContext:
    {{- include "oke-h100.podSecurityContext" . | trim | nindent 4 }}
  {{- with include "oke-h100.slot.podSpec" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with include "oke-h100.merge" (list (toYaml .Values.nodeSelector) (include "oke-h100.slot.nodeSelector" .)) }}
  nodeSelector:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with concat (include "oke-h100.tolerations" . | fromYamlArray) .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  affinity:
    {{- .Run.affinity | nindent 4 }}
  volumes:
    {{- include "oke-h100.volumes" . | trim | nindent 4 }}
  {{- with include "oke-h100.slot.resourceClaims" . | fromYamlArray }}
  resourceClaims:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "oke-h100.initContainers" . | trim }}
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
        - {{ trimPrefix "-m " .Run.launcher.program | include "oke-h100.literal" }}
        {{- range include (printf "oke-h100.launcher.%s.args" .Values.launcher) . | fromYamlArray }}
        - {{ include "oke-h100.literal" . }}
        {{- end }}
        {{- range .Run.launcher.args }}
        - {{ include "oke-h100.filled" (list $ .) | include "oke-h100.literal" }}
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
        {{- $gpus := include "oke-h100.slot.resourceLimits" . | fromYaml }}
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
        {{- with include "oke-h100.slot.resourceClaims" . | fromYamlArray }}
        claims:
          {{- range . }}
          - name: {{ .name }}
          {{- end }}
        {{- end }}
      securityContext:
        {{- include "oke-h100.securityContext" . | nindent 8 }}
      volumeMounts:
        {{- include "oke-h100.volumeMounts" . | trim | nindent 8 }}

    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* Fields of the pod's spec that fragments fill. */}}
{{- define "oke-h100.slot.podSpec" -}}
{{- if .Run.gpu }}
{{- /* roce-oke */}}
{{- if eq .Values.network.mode "host" }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- end }}
{{- end }}

{{/* Maps that fragments fill; the user's values of the same name win over them. */}}
{{- define "oke-h100.slot.podAnnotations" -}}
{{- if .Run.gpu }}
{{- /* roce-oke */}}
# Makes changed settings a changed run.
checksum/nccl.conf: {{ include "oke-h100.ncclConf" . | sha256sum }}
{{- if eq .Values.network.mode "sriov" }}
{{- $networks := list }}
{{- range until (include "oke-h100.roceFunctions" . | int) }}{{ $networks = append $networks $.Values.network.virtualFunctions }}{{ end }}
k8s.v1.cni.cncf.io/networks: {{ join "," $networks }}
{{- end }}
{{- end }}
{{- end }}
{{- define "oke-h100.slot.nodeSelector" -}}
{{- if .Run.gpu }}
{{- /* instance-type */}}
node.kubernetes.io/instance-type: {{ .Values.machineType }}
{{- end }}
{{- end }}
{{- define "oke-h100.slot.securityContext" -}}
{{- if .Run.gpu }}
{{- /* roce-oke */}}
{{- if eq .Values.network.mode "host" }}
privileged: true
{{- end }}
capabilities:
  add: [IPC_LOCK]
{{- end }}
{{- end }}

{{/* Devices that fragments claim for the pod; the program's container uses all of them. */}}
{{- define "oke-h100.slot.resourceClaims" -}}
{{- if .Run.gpu }}
{{- /* compute-domain */}}
{{- if include "oke-h100.computeDomain" . }}
- name: compute-domain-channel
  resourceClaimTemplateName: {{ .Run.name }}-channel
{{- end }}
{{- end }}
{{- end }}


{{/* Tolerations that fragments need. The queue's flavor carries the same ones, byte for byte, or Helm and Kueue clash. */}}
{{- define "oke-h100.tolerations" -}}
{{- if .Run.gpu }}
{{- /* nvidia-gpu */}}
- key: nvidia.com/gpu
  operator: Exists
{{- end }}
{{- end }}

{{/*
Affinity: the user's and the fragments', the nodes to avoid, and one rule of the chart's own: no pod of this run starts
while another run of the release still has pods, so that two runs never write to one checkpoint directory.
*/}}
{{- define "oke-h100.affinity" -}}
{{- $affinity := include "oke-h100.merge" (list (toYaml .Values.affinity)) | fromYaml }}
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
