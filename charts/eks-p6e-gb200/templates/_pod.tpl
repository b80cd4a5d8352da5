{{/* The pod of the program: one for each machine of the run. */}}
{{- define "eks-p6e-gb200.pod" -}}
{{- $launcher := .Run.launcher -}}
metadata:
  labels:
    {{- include "eks-p6e-gb200.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $launcher.task }}
    run: {{ .Run.name }}
    {{- with include "eks-p6e-gb200.merge" (list (toYaml .Values.podLabels)) }}
    {{- . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: pytorch
    {{- with include "eks-p6e-gb200.merge" (list (toYaml .Values.podAnnotations) (include "eks-p6e-gb200.slot.podAnnotations" .)) }}
    {{- . | nindent 4 }}
    {{- end }}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: {{ .Values.run.gracePeriodSeconds | int64 }}
  {{- include "eks-p6e-gb200.account" . | nindent 2 }}
  securityContext:
    {{- include "eks-p6e-gb200.podSecurityContext" . | trim | nindent 4 }}
  {{- with include "eks-p6e-gb200.merge" (list (toYaml .Values.nodeSelector) (include "eks-p6e-gb200.slot.nodeSelector" .)) }}
  nodeSelector:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with concat (include "eks-p6e-gb200.tolerations" . | fromYamlArray) .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  affinity:
    {{- .Run.affinity | nindent 4 }}
  volumes:
    {{- include "eks-p6e-gb200.volumes" . | trim | nindent 4 }}
  {{- with include "eks-p6e-gb200.slot.resourceClaims" . | fromYamlArray }}
  resourceClaims:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "eks-p6e-gb200.initContainers" . | trim }}
  initContainers:
    {{- . | nindent 4 }}
  {{- end }}
  containers:
    - name: pytorch
      image: {{ $launcher.image | quote }}
      imagePullPolicy: {{ .Values.imagePullPolicy }}
      command: [bash, /etc/chartgen/start.sh]
      args:
        {{- if hasPrefix "-m " .Run.launcher.program }}
        - "-m"
        {{- end }}
        - {{ trimPrefix "-m " .Run.launcher.program | include "eks-p6e-gb200.literal" }}
        {{- range include (printf "eks-p6e-gb200.launcher.%s.args" .Values.launcher) . | fromYamlArray }}
        - {{ include "eks-p6e-gb200.literal" . }}
        {{- end }}
        {{- range .Run.launcher.args }}
        - {{ include "eks-p6e-gb200.filled" (list $ .) | include "eks-p6e-gb200.literal" }}
        {{- end }}
      env:
        {{- .Run.env | nindent 8 }}
      {{- if .Run.gpu }}
      ports:
        - name: pytorchjob-port
          containerPort: 6002
        {{- if .Run.exporter }}
        - name: metrics
          containerPort: {{ .Values.run.metricsPort | int64 }}
        {{- end }}
      {{- end }}
      resources:
        {{- $gpus := include "eks-p6e-gb200.slot.resourceLimits" . | fromYaml }}
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
        {{- with include "eks-p6e-gb200.slot.resourceClaims" . | fromYamlArray }}
        claims:
          {{- range . }}
          - name: {{ .name }}
          {{- end }}
        {{- end }}
      securityContext:
        {{- include "eks-p6e-gb200.securityContext" . | nindent 8 }}
      volumeMounts:
        {{- include "eks-p6e-gb200.volumeMounts" . | trim | nindent 8 }}

    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* Maps that fragments fill; the user's values of the same name win over them. */}}
{{- define "eks-p6e-gb200.slot.podAnnotations" -}}
{{- /* eks-nodes */}}
karpenter.sh/do-not-disrupt: "true"
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
{{- define "eks-p6e-gb200.slot.nodeSelector" -}}
{{- if .Run.gpu }}
{{- /* instance-type */}}
node.kubernetes.io/instance-type: {{ .Values.machineType }}
{{- end }}
{{- end }}
{{- define "eks-p6e-gb200.slot.affinity" -}}
{{- if .Run.gpu }}
{{- /* efa */}}
{{- $nodes := .Run.pods }}
{{- if and (include "eks-p6e-gb200.efaAdapters" . | int64) (gt $nodes 1) }}
{{- $fabric := .Run.machine.fabric | default dict }}
podAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    # EFA does not leave the Availability Zone: all machines of the run are in that of the first, and in its rack of NVLink
    # where they fit into one.
    - topologyKey: {{ le $nodes ($fabric.rack | default 0 | int64) | ternary "nvidia.com/gpu.clique" "topology.kubernetes.io/zone" }}
      labelSelector:
        matchLabels:
          run: {{ .Run.name }}
{{- end }}
{{- end }}
{{- end }}
{{- define "eks-p6e-gb200.slot.labels" -}}
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
{{- define "eks-p6e-gb200.slot.resourceClaims" -}}
{{- if .Run.gpu }}
{{- /* compute-domain */}}
{{- if include "eks-p6e-gb200.computeDomain" . }}
- name: compute-domain-channel
  resourceClaimTemplateName: {{ .Run.name }}-channel
{{- end }}
{{- end }}
{{- end }}


{{/* Tolerations that fragments need. The queue's flavor carries the same ones, byte for byte, or Helm and Kueue clash. */}}
{{- define "eks-p6e-gb200.tolerations" -}}
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
{{- define "eks-p6e-gb200.affinity" -}}
{{- $affinity := include "eks-p6e-gb200.merge" (list (toYaml .Values.affinity) (include "eks-p6e-gb200.slot.affinity" .)) | fromYaml }}
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
