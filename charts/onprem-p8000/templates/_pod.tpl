{{/* The pod of the program: one for each machine of the run. */}}
{{- define "onprem-p8000.pod" -}}
{{- $launcher := .Run.launcher -}}
metadata:
  labels:
    {{- include "onprem-p8000.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $launcher.task }}
    run: {{ .Run.name }}
    {{- with include "onprem-p8000.merge" (list (toYaml .Values.podLabels)) }}
    {{- . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: workload
    {{- with include "onprem-p8000.merge" (list (toYaml .Values.podAnnotations) (include "onprem-p8000.slot.podAnnotations" .)) }}
    {{- . | nindent 4 }}
    {{- end }}
spec:
  {{- if .Run.gpu }}
  subdomain: {{ .Run.name }}
  {{- end }}
  restartPolicy: Never
  terminationGracePeriodSeconds: {{ .Values.run.gracePeriodSeconds | int64 }}
  {{- include "onprem-p8000.account" . | nindent 2 }}
  securityContext:
    {{- include "onprem-p8000.podSecurityContext" . | trim | nindent 4 }}
  {{- with include "onprem-p8000.merge" (list (toYaml .Values.nodeSelector) (include "onprem-p8000.slot.nodeSelector" .)) }}
  nodeSelector:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with concat (include "onprem-p8000.tolerations" . | fromYamlArray) .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  affinity:
    {{- .Run.affinity | nindent 4 }}
  volumes:
    {{- include "onprem-p8000.volumes" . | trim | nindent 4 }}
  {{- with include "onprem-p8000.initContainers" . | trim }}
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
        - {{ trimPrefix "-m " .Run.launcher.program | include "onprem-p8000.literal" }}
        {{- range include (printf "onprem-p8000.launcher.%s.args" .Values.launcher) . | fromYamlArray }}
        - {{ include "onprem-p8000.literal" . }}
        {{- end }}
        {{- range .Run.launcher.args }}
        - {{ include "onprem-p8000.filled" (list $ .) | include "onprem-p8000.literal" }}
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
        {{- $gpus := include "onprem-p8000.slot.resourceLimits" . | fromYaml }}
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
      securityContext:
        {{- include "onprem-p8000.securityContext" . | nindent 8 }}
      volumeMounts:
        {{- include "onprem-p8000.volumeMounts" . | trim | nindent 8 }}

    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* Maps that fragments fill; the user's values of the same name win over them. */}}
{{- define "onprem-p8000.slot.podAnnotations" -}}
{{- if .Run.gpu }}
{{- /* infiniband */}}
{{- if and (include "onprem-p8000.infiniband" .) .Values.network.attachments }}
k8s.v1.cni.cncf.io/networks: {{ join "," .Values.network.attachments | quote }}
{{- end }}
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
{{- define "onprem-p8000.slot.nodeSelector" -}}
{{- if .Run.gpu }}
{{- /* machine-labels */}}
{{- with .Values.machineLabels }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}
{{- end }}
{{- define "onprem-p8000.slot.securityContext" -}}
{{- if .Run.gpu }}
{{- /* infiniband */}}
{{- if and (include "onprem-p8000.infiniband" .) .Values.network.lockMemory }}
capabilities:
  add: [IPC_LOCK]
{{- end }}
{{- end }}
{{- end }}
{{- define "onprem-p8000.slot.labels" -}}
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


{{/* Tolerations that fragments need. The queue's flavor carries the same ones, byte for byte, or Helm and Kueue clash. */}}
{{- define "onprem-p8000.tolerations" -}}
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
{{- define "onprem-p8000.affinity" -}}
{{- $affinity := include "onprem-p8000.merge" (list (toYaml .Values.affinity)) | fromYaml }}
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
