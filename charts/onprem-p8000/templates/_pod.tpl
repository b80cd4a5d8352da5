{{/* Maps that fragments fill; the user's values of the same name win over them. */}}
{{- define "onprem-p8000.slot.podAnnotations" -}}
{{- if include "onprem-p8000.gpu" . }}
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
{{- define "onprem-p8000.slot.podLabels" -}}
{{- end }}
{{- define "onprem-p8000.slot.nodeSelector" -}}
{{- if include "onprem-p8000.gpu" . }}
{{- /* machine-labels */}}
{{- with .Values.machineLabels }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}
{{- end }}
{{- define "onprem-p8000.slot.affinity" -}}
{{- end }}
{{- define "onprem-p8000.slot.initContainers" -}}
{{- /* storage */}}
{{- if include "onprem-p8000.ownFolders" . | trim }}
{{- $own := .Values.data.podSecurityContext }}
{{- $folders := include "onprem-p8000.ownFolders" . | fromYamlArray }}
{{- $mounts := list }}
{{- range $folders }}{{ $mounts = append $mounts (regexFind "^/[^/]*" .) }}{{ end }}
# New storage belongs to root, and neither NFS nor every driver of claims knows fsGroup, which would also change what
# others have there. So root makes the folders of the program, and gives it those that are root's: these alone, and not
# what is in them. Whose folder it is decides, since this root is not asked for permission.
- name: own-folders
  image: {{ (include "onprem-p8000.launcher" . | fromYaml).image | quote }}
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
    - {{ include "onprem-p8000.literal" . }}
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
    - name: {{ include "onprem-p8000.storeVolume" (list $ $role) }}
      mountPath: /{{ $role }}
      {{- with include "onprem-p8000.storeSubPath" (list $ $role) }}
      subPath: {{ quote . }}
      {{- end }}
    {{- end }}
    {{- end }}
{{- end }}
{{- end }}
{{- define "onprem-p8000.slot.securityContext" -}}
{{- if include "onprem-p8000.gpu" . }}
{{- /* infiniband */}}
{{- if include "onprem-p8000.infiniband" . }}
capabilities:
  add: [IPC_LOCK]
{{- end }}
{{- end }}
{{- end }}
{{- define "onprem-p8000.slot.labels" -}}
{{- if include "onprem-p8000.gpu" . }}
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
{{- define "onprem-p8000.slot.annotations" -}}
{{- if include "onprem-p8000.gpu" . }}
{{- /* kueue */}}
{{- if .Values.queue.flexStart }}
provreq.kueue.x-k8s.io/maxRunDurationSeconds: {{ .Values.run.deadlineSeconds | int64 | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Variables of the program, each name once: fragments < launcher < user. */}}
{{- define "onprem-p8000.env" -}}
{{- $env := dict }}
{{- range list (include "onprem-p8000.slot.env" .) (include (printf "onprem-p8000.launcher.%s.env" .Values.launcher) .) }}
{{- range . | fromYamlArray }}{{ $_ := set $env .name . }}{{ end }}
{{- end }}
{{- range $name, $value := .Values.env }}{{ $_ := set $env $name (dict "value" $value) }}{{ end }}
{{- range $name, $key := .Values.secretEnv }}
{{- $_ := set $env $name (dict "valueFrom" (dict "secretKeyRef" (dict "name" $key.secretName "key" $key.key))) }}
{{- end }}
{{- range $name, $entry := $env }}
- name: {{ $name }}
{{- if hasKey $entry "value" }}
  value: {{ include "onprem-p8000.literal" $entry.value }}
{{- else }}
  valueFrom: {{- toYaml $entry.valueFrom | nindent 4 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "onprem-p8000.slot.env" }}
- name: NNODES
  value: {{ include "onprem-p8000.nodes" . | quote }}
- name: NODE_RANK
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['{{ include "onprem-p8000.gpu" . | empty | ternary "batch.kubernetes.io/job-completion-index" "batch.kubernetes.io/job-completion-index" }}']
{{- if include "onprem-p8000.gpu" . }}
- name: GPUS_PER_NODE
  value: {{ include "onprem-p8000.gpusPerNode" . | quote }}
- name: MASTER_ADDR
  value: {{ include "onprem-p8000.rendezvous" . }}
- name: MASTER_PORT
  value: "6002"
- name: RUN_DIRECTORY
  value: {{ include "onprem-p8000.runDirectory" . | quote }}
- name: CHECKPOINT_DIRECTORY
  value: {{ printf "%s/checkpoints" (include "onprem-p8000.home" .) | quote }}
{{- if include "onprem-p8000.staged" . }}
- name: STAGED_DATA
  {{- $paths := list }}
  {{- range include "onprem-p8000.storedData" . | fromYamlArray }}{{ $paths = append $paths .path }}{{ end }}
  value: {{ join "\n" $paths | quote }}
{{- end }}
{{- end }}
{{- if not (include "onprem-p8000.gpu" .) }}
# Its own user has no home in the image, and may have no name there.
- name: HOME
  value: /tmp
- name: USER
  value: data
{{- end }}
{{- $launcher := include "onprem-p8000.launcher" . | fromYaml }}
{{- if eq $launcher.processes "workers" }}
- name: WORKERS
  value: {{ $launcher.workers | default 1 | int64 | quote }}
{{- end }}
{{- if include "onprem-p8000.gpu" . }}
{{- /* infiniband */}}
- name: NCCL_SOCKET_IFNAME
  value: eth0
# NCCL's own InfiniBand, whatever plugin an image presets, as NVIDIA's do from 26.06 on.
- name: NCCL_NET_PLUGIN
  value: none
- name: NCCL_DEBUG
  value: WARN
{{- if include "onprem-p8000.infiniband" . }}
{{- with .Values.network.adapters }}
- name: NCCL_IB_HCA
  value: {{ . | quote }}
{{- end }}
# By itself NCCL falls back to TCP without a word; told the network, it stops where there is none.
- name: NCCL_NET
  value: IB
{{- else if eq .Values.network.interface "tcp" }}
- name: NCCL_NET
  value: Socket
{{- end }}
{{- end }}
{{- end }}

{{/* The pod of the program: one for each machine of the run. */}}
{{- define "onprem-p8000.pod" -}}
{{- $launcher := include "onprem-p8000.launcher" . | fromYaml -}}
metadata:
  labels:
    {{- include "onprem-p8000.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $launcher.task }}
    run: {{ include "onprem-p8000.run" . }}
    {{- with include "onprem-p8000.merge" (list (toYaml .Values.podLabels) (include "onprem-p8000.slot.podLabels" .)) }}
    {{- . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: workload
    {{- with include "onprem-p8000.merge" (list (toYaml .Values.podAnnotations) (include "onprem-p8000.slot.podAnnotations" .)) }}
    {{- . | nindent 4 }}
    {{- end }}
spec:
  {{- if include "onprem-p8000.gpu" . }}
  subdomain: {{ include "onprem-p8000.run" . }}
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
    {{- include "onprem-p8000.affinity" . | nindent 4 }}
  volumes:
    - name: start
      configMap:
        name: {{ include "onprem-p8000.run" . }}
    {{- if include "onprem-p8000.ownTmp" . }}
    - name: data-tmp
      emptyDir: {}
    {{- end }}
    {{- if include "onprem-p8000.gpu" . }}
    {{- /* shared-memory */}}
    - name: shared-memory
      emptyDir:
        medium: Memory
        sizeLimit: {{ .Values.sharedMemory | quote }}
    {{- end }}
    {{- /* storage-pvc */}}
    {{- range $role, $store := .Values.storage }}
    {{- if and (hasPrefix "pvc://" $store.from) (eq $role (include "onprem-p8000.storeVolume" (list $ $role))) }}
    - name: {{ $role }}
      persistentVolumeClaim:
        claimName: {{ include "onprem-p8000.storeName" $store.from | quote }}
    {{- end }}
    {{- end }}
    {{- /* storage-nfs */}}
    {{- range $role, $store := .Values.storage }}
    {{- if hasPrefix "nfs://" $store.from }}
    - name: {{ $role }}
      nfs:
        server: {{ include "onprem-p8000.storeName" $store.from | quote }}
        path: {{ printf "/%s" (include "onprem-p8000.storePath" $store.from) | quote }}
        {{- if $store.readOnly }}
        readOnly: true
        {{- end }}
    {{- end }}
    {{- end }}
    {{- /* storage-disk */}}
    {{- range $role, $store := .Values.storage }}
    {{- if hasPrefix "disk://" $store.from }}
    - name: {{ $role }}
      {{- if include "onprem-p8000.gpu" $ }}
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
  {{- with include "onprem-p8000.slot.initContainers" . | trim }}
  initContainers:
    {{- . | nindent 4 }}
  {{- end }}
  containers:
    - name: workload
      image: {{ $launcher.image | quote }}
      imagePullPolicy: {{ .Values.imagePullPolicy }}
      command: [bash, /etc/chartgen/start.sh]
      args:
        - {{ include "onprem-p8000.literal" $launcher.program }}
        {{- range include (printf "onprem-p8000.launcher.%s.args" .Values.launcher) . | fromYamlArray }}
        - {{ include "onprem-p8000.literal" . }}
        {{- end }}
        {{- range $launcher.args }}
        - {{ include "onprem-p8000.literal" . }}
        {{- end }}
      env:
        {{- include "onprem-p8000.env" . | trim | nindent 8 }}
      {{- if include "onprem-p8000.gpu" . }}
      ports:
        - name: rendezvous
          containerPort: 6002
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
        - name: start
          mountPath: /etc/chartgen
          readOnly: true
        {{- if include "onprem-p8000.ownTmp" . }}
        - name: data-tmp
          mountPath: /tmp
        {{- end }}
        {{- if include "onprem-p8000.gpu" . }}
        {{- /* shared-memory */}}
        - name: shared-memory
          mountPath: /dev/shm
        {{- end }}
        {{- /* storage */}}
        {{- $own := include (printf "onprem-p8000.launcher.%s.mounts" .Values.launcher) . | fromYamlArray }}
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
        - name: {{ include "onprem-p8000.storeVolume" (list $ $role) }}
          mountPath: {{ .mountPath }}
          {{- with prepend (rest $parts) (include "onprem-p8000.storeSubPath" (list $ $role)) | compact | join "/" }}
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
{{- define "onprem-p8000.tolerations" -}}
{{- if include "onprem-p8000.gpu" . }}
{{- /* nvidia-gpu */}}
- key: nvidia.com/gpu
  operator: Exists
{{- end }}
{{- end }}
