{{/* Maps that fragments fill; the user's values of the same name win over them. */}}
{{- define "eks-p5.slot.podAnnotations" -}}
{{- /* eks-nodes */}}
karpenter.sh/do-not-disrupt: "true"
{{- if include "eks-p5.gpu" . }}
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
{{- define "eks-p5.slot.podLabels" -}}
{{- end }}
{{- define "eks-p5.slot.nodeSelector" -}}
{{- if include "eks-p5.gpu" . }}
{{- /* instance-type */}}
node.kubernetes.io/instance-type: {{ .Values.machineType }}
{{- end }}
{{- end }}
{{- define "eks-p5.slot.affinity" -}}
{{- if include "eks-p5.gpu" . }}
{{- /* efa */}}
{{- if and (include "eks-p5.efaAdapters" . | int64) (gt (include "eks-p5.nodes" . | int64) 1) }}
# EFA does not leave the Availability Zone: all machines of the run are in that of the first.
podAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: topology.kubernetes.io/zone
      labelSelector:
        matchLabels:
          run: {{ include "eks-p5.run" . }}
{{- end }}
{{- end }}
{{- end }}
{{- define "eks-p5.slot.initContainers" -}}
{{- /* storage */}}
{{- if include "eks-p5.ownFolders" . | trim }}
{{- $own := .Values.data.podSecurityContext }}
{{- $folders := include "eks-p5.ownFolders" . | fromYamlArray }}
{{- $mounts := list }}
{{- range $folders }}{{ $mounts = append $mounts (regexFind "^/[^/]*" .) }}{{ end }}
# New storage belongs to root, and neither NFS nor every driver of claims knows fsGroup, which would also change what
# others have there. So root makes the folders of the program, and gives it those that are root's: these alone, and not
# what is in them. Whose folder it is decides, since this root is not asked for permission.
- name: own-folders
  image: {{ (include "eks-p5.launcher" . | fromYaml).image | quote }}
  imagePullPolicy: {{ .Values.imagePullPolicy }}
  command:
    - bash
    - -euc
    - |
      user=$1 groups=$2
      shift 2
      for folder in "$@"; do
        mkdir -p "$folder"
        read -r owner group mode < <(stat -c "%u %g %a" "$folder")
        if [[ $owner == "$user" ]] || ((0$mode & 2)) || { ((0$mode & 16)) && [[ " $groups " == *" $group "* ]]; }; then
          continue
        fi
        if [[ $owner != 0 ]] || ! chown "$user:${groups%% *}" "$folder"; then
          echo "chartgen: user $user cannot write to $folder, which belongs to user $owner and group $group; set" \
            "data.podSecurityContext to who can, or change its owner on the server" >&2
          exit 1
        fi
      done
    - own-folders
  args:
    - {{ int64 $own.runAsUser | quote }}
    {{- $groups := list }}
    {{- range prepend $own.supplementalGroups $own.runAsGroup }}{{ $groups = append $groups (int64 .) }}{{ end }}
    - {{ join " " $groups | quote }}
    {{- range $folders }}
    - {{ include "eks-p5.literal" . }}
    {{- end }}
  resources:
    requests: {cpu: 10m, memory: 32Mi}
    limits: {memory: 64Mi}
  securityContext:
    runAsNonRoot: false
    runAsUser: 0
    runAsGroup: 0
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
      add: [CHOWN, DAC_OVERRIDE]
  # A bucket is there only when the containers behind this one are.
  volumeMounts:
    {{- range $role, $store := .Values.storage }}
    {{- if has (printf "/%s" $role) $mounts }}
    - name: {{ include "eks-p5.storeVolume" (list $ $role) }}
      mountPath: /{{ $role }}
      {{- with include "eks-p5.storeSubPath" (list $ $role) }}
      subPath: {{ quote . }}
      {{- end }}
    {{- end }}
    {{- end }}
{{- end }}
{{- end }}
{{- define "eks-p5.slot.securityContext" -}}
{{- end }}
{{- define "eks-p5.slot.labels" -}}
{{- if include "eks-p5.gpu" . }}
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
{{- define "eks-p5.slot.annotations" -}}
{{- if include "eks-p5.gpu" . }}
{{- /* kueue */}}
{{- if .Values.queue.flexStart }}
provreq.kueue.x-k8s.io/maxRunDurationSeconds: {{ .Values.run.deadlineSeconds | int64 | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Variables of the program, each name once: fragments < launcher < user. */}}
{{- define "eks-p5.env" -}}
{{- $env := dict }}
{{- range list (include "eks-p5.slot.env" .) (include (printf "eks-p5.launcher.%s.env" .Values.launcher) .) }}
{{- range . | fromYamlArray }}{{ $_ := set $env .name . }}{{ end }}
{{- end }}
{{- range $name, $value := .Values.env }}{{ $_ := set $env $name (dict "value" $value) }}{{ end }}
{{- range $name, $key := .Values.secretEnv }}
{{- $_ := set $env $name (dict "valueFrom" (dict "secretKeyRef" (dict "name" $key.secretName "key" $key.key))) }}
{{- end }}
{{- range $name, $entry := $env }}
- name: {{ $name }}
{{- if hasKey $entry "value" }}
  value: {{ include "eks-p5.literal" $entry.value }}
{{- else }}
  valueFrom: {{- toYaml $entry.valueFrom | nindent 4 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "eks-p5.slot.env" }}
- name: NNODES
  value: {{ include "eks-p5.nodes" . | quote }}
- name: NODE_RANK
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['{{ include "eks-p5.gpu" . | empty | ternary "batch.kubernetes.io/job-completion-index" "training.kubeflow.org/replica-index" }}']
{{- if include "eks-p5.gpu" . }}
- name: GPUS_PER_NODE
  value: {{ include "eks-p5.gpusPerNode" . | quote }}
- name: MASTER_ADDR
  value: {{ include "eks-p5.rendezvous" . }}
- name: MASTER_PORT
  value: "6002"
- name: RUN_DIRECTORY
  value: {{ include "eks-p5.runDirectory" . | quote }}
- name: CHECKPOINT_DIRECTORY
  value: {{ printf "%s/checkpoints" (include "eks-p5.home" .) | quote }}
{{- if include "eks-p5.staged" . }}
- name: STAGED_DATA
  {{- $paths := list }}
  {{- range include "eks-p5.storedData" . | fromYamlArray }}{{ $paths = append $paths .path }}{{ end }}
  value: {{ join "\n" $paths | quote }}
{{- end }}
{{- end }}
{{- if not (include "eks-p5.gpu" .) }}
# Its own user has no home in the image, and may have no name there.
- name: HOME
  value: /tmp
- name: USER
  value: data
{{- end }}
{{- $launcher := include "eks-p5.launcher" . | fromYaml }}
{{- if eq $launcher.processes "workers" }}
- name: WORKERS
  value: {{ $launcher.workers | default 1 | int64 | quote }}
{{- end }}
{{- if include "eks-p5.gpu" . }}
{{- /* efa */}}
# A pod has one interface beside the loopback, whatever it is called.
- name: NCCL_SOCKET_IFNAME
  value: ^lo
- name: NCCL_DEBUG
  value: WARN
{{- if include "eks-p5.efaAdapters" . | int64 }}
{{- if not .Values.network.hugePages }}
# Huge pages that the pod does not have make fork() of data loaders fail.
- name: FI_EFA_USE_HUGE_PAGE
  value: "0"
{{- end }}
{{- with .Values.network.plugin }}
- name: EFA_PLUGIN
  value: {{ . | quote }}
{{- end }}
{{- else if eq .Values.network.interface "tcp" }}
- name: NCCL_NET
  value: Socket
- name: NCCL_NET_PLUGIN
  value: none
{{- end }}
{{- end }}
{{- end }}

{{/* The pod of the program: one for each machine of the run. */}}
{{- define "eks-p5.pod" -}}
{{- $launcher := include "eks-p5.launcher" . | fromYaml -}}
metadata:
  labels:
    {{- include "eks-p5.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $launcher.task }}
    run: {{ include "eks-p5.run" . }}
    {{- with include "eks-p5.merge" (list (toYaml .Values.podLabels) (include "eks-p5.slot.podLabels" .)) }}
    {{- . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: pytorch
    {{- with include "eks-p5.merge" (list (toYaml .Values.podAnnotations) (include "eks-p5.slot.podAnnotations" .)) }}
    {{- . | nindent 4 }}
    {{- end }}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: {{ .Values.run.gracePeriodSeconds | int64 }}
  {{- include "eks-p5.account" . | nindent 2 }}
  securityContext:
    {{- include "eks-p5.podSecurityContext" . | trim | nindent 4 }}

  {{- with include "eks-p5.merge" (list (toYaml .Values.nodeSelector) (include "eks-p5.slot.nodeSelector" .)) }}
  nodeSelector:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with concat (include "eks-p5.tolerations" . | fromYamlArray) .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  affinity:
    {{- include "eks-p5.affinity" . | nindent 4 }}
  volumes:
    - name: start
      configMap:
        name: {{ include "eks-p5.run" . }}
    {{- if include "eks-p5.ownTmp" . }}
    - name: data-tmp
      emptyDir: {}
    {{- end }}
    {{- if include "eks-p5.gpu" . }}
    {{- /* shared-memory */}}
    - name: shared-memory
      emptyDir:
        medium: Memory
        sizeLimit: {{ .Values.sharedMemory | quote }}
    {{- end }}
    {{- /* storage-pvc */}}
    {{- range $role, $store := .Values.storage }}
    {{- if and (hasPrefix "pvc://" $store.from) (eq $role (include "eks-p5.storeVolume" (list $ $role))) }}
    - name: {{ $role }}
      persistentVolumeClaim:
        claimName: {{ include "eks-p5.storeName" $store.from | quote }}
    {{- end }}
    {{- end }}
    {{- /* storage-nfs */}}
    {{- range $role, $store := .Values.storage }}
    {{- if hasPrefix "nfs://" $store.from }}
    - name: {{ $role }}
      nfs:
        server: {{ include "eks-p5.storeName" $store.from | quote }}
        path: {{ printf "/%s" (include "eks-p5.storePath" $store.from) | quote }}
        {{- if $store.readOnly }}
        readOnly: true
        {{- end }}
    {{- end }}
    {{- end }}
    {{- /* storage-disk */}}
    {{- range $role, $store := .Values.storage }}
    {{- if hasPrefix "disk://" $store.from }}
    - name: {{ $role }}
      {{- if include "eks-p5.gpu" $ }}
      hostPath:
        path: {{ $.Values.localDisk | quote }}
        # A machine without local disks refuses the pod instead of filling its boot disk.
        type: Directory
      {{- else }}
      # Programs without GPUs run on machines that need not have such disks.
      emptyDir: {}
      {{- end }}
    {{- end }}
    {{- end }}
    {{- /* storage-memory */}}
    {{- range $role, $store := .Values.storage }}
    {{- if hasPrefix "memory://" $store.from }}
    - name: {{ $role }}
      emptyDir:
        medium: Memory
    {{- end }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with include "eks-p5.slot.initContainers" . | trim }}
  initContainers:
    {{- . | nindent 4 }}
  {{- end }}
  containers:
    - name: pytorch
      image: {{ $launcher.image | quote }}
      imagePullPolicy: {{ .Values.imagePullPolicy }}
      command: [bash, /etc/chartgen/start.sh]
      args:
        - {{ include "eks-p5.literal" $launcher.program }}
        {{- range include (printf "eks-p5.launcher.%s.args" .Values.launcher) . | fromYamlArray }}
        - {{ include "eks-p5.literal" . }}
        {{- end }}
        {{- range $launcher.args }}
        - {{ include "eks-p5.literal" . }}
        {{- end }}
      env:
        {{- include "eks-p5.env" . | trim | nindent 8 }}
      {{- if include "eks-p5.gpu" . }}
      ports:
        - name: pytorchjob-port
          containerPort: 6002
      {{- end }}
      resources:
        {{- $gpus := include "eks-p5.slot.resourceLimits" . | fromYaml }}
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
        {{- include "eks-p5.securityContext" . | nindent 8 }}
      volumeMounts:
        - name: start
          mountPath: /etc/chartgen
          readOnly: true
        {{- if include "eks-p5.ownTmp" . }}
        - name: data-tmp
          mountPath: /tmp
        {{- end }}
        {{- if include "eks-p5.gpu" . }}
        {{- /* shared-memory */}}
        - name: shared-memory
          mountPath: /dev/shm
        {{- end }}
        {{- /* storage */}}
        {{- $own := include (printf "eks-p5.launcher.%s.mounts" .Values.launcher) . | fromYamlArray }}
        {{- $taken := list }}
        {{- range $own }}{{ $taken = append $taken .mountPath }}{{ end }}
        {{- range $role, $store := .Values.storage }}
        {{- if not (has (printf "/%s" $role) $taken) }}
        {{- $own = append $own (dict "mountPath" (printf "/%s" $role) "from" (printf "/%s" $role)) }}
        {{- end }}
        {{- end }}
        {{- range $own }}
        {{- $parts := splitList "/" (trimPrefix "/" .from) }}
        {{- $role := first $parts }}
        - name: {{ include "eks-p5.storeVolume" (list $ $role) }}
          mountPath: {{ .mountPath }}
          {{- with prepend (rest $parts) (include "eks-p5.storeSubPath" (list $ $role)) | compact | join "/" }}
          subPath: {{ quote . }}
          {{- end }}
          {{- if or .readOnly (get $.Values.storage $role).readOnly }}
          readOnly: true
          {{- end }}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}

{{- end }}

{{/* Tolerations that fragments need. The queue's flavor carries the same ones, byte for byte, or Helm and Kueue clash. */}}
{{- define "eks-p5.tolerations" -}}
{{- if include "eks-p5.gpu" . }}
{{- /* nvidia-gpu */}}
- key: nvidia.com/gpu
  operator: Exists
{{- end }}
{{- end }}
