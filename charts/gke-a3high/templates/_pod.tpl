{{/* Maps that fragments fill; the user's values of the same name win over them. */}}
{{- define "gke-a3high.slot.podAnnotations" -}}
{{- if include "gke-a3high.gpu" . }}
{{- /* gpudirect */}}
{{- if not .Values.network.hostNetwork }}
networking.gke.io/default-interface: eth0
networking.gke.io/interfaces: {{ include "gke-a3high.gpudirectInterfaces" . | quote }}
{{- $gpudirect := include "gke-a3high.gpudirect" . | fromYaml }}
# The name after the slash is the daemon's container: GKE injects the devices into that one.
devices.gke.io/container.{{ $gpudirect.daemon }}: {{ include "gke-a3high.gpudirectDevices" ($gpudirect.devices | default list) | trim | quote }}
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
{{- if include "gke-a3high.gpu" . }}
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
{{- define "gke-a3high.slot.podLabels" -}}
{{- end }}
{{- define "gke-a3high.slot.nodeSelector" -}}
{{- if include "gke-a3high.gpu" . }}
{{- /* instance-type */}}
node.kubernetes.io/instance-type: {{ .Values.machineType }}
{{- end }}
{{- end }}
{{- define "gke-a3high.slot.affinity" -}}
{{- end }}
{{- define "gke-a3high.slot.initContainers" -}}
{{- if include "gke-a3high.gpu" . }}
{{- /* gpudirect */}}
{{- $gpudirect := include "gke-a3high.gpudirect" . | fromYaml }}
# Copies the NCCL plugin to where the program finds it.
- name: nccl-plugin-installer
  image: "{{ .Values.network.repository }}/nccl-plugin-gpudirecttcpx-dev:{{ .Values.network.pluginVersion }}"
  imagePullPolicy: {{ .Values.imagePullPolicy }}
  command: [/bin/sh, -ec, {{ toJson $gpudirect.install }}, installer]
  args: {{ toJson $gpudirect.installArguments }}
  securityContext:
    allowPrivilegeEscalation: false
    capabilities:
      drop: [ALL]
      add: [CHOWN, DAC_OVERRIDE, FOWNER]
  volumeMounts:
    - name: nccl-plugin
      mountPath: {{ $gpudirect.installed }}
# RxDM, the receive daemon. A native sidecar: it runs before and beside the program and ends with it, also when the
# program is killed.
- name: {{ $gpudirect.daemon }}
  image: "{{ .Values.network.repository }}/tcpgpudmarxd-dev:{{ .Values.network.daemonVersion }}"
  imagePullPolicy: {{ .Values.imagePullPolicy }}
  restartPolicy: Always
  command:
    - bash
    - -c
    - |
      {{- include "gke-a3high.gpudirectWatch" . | nindent 6 }}
    - {{ $gpudirect.daemon }}
  args: {{ toJson $gpudirect.daemonCommand }}
  env:
    - name: LD_LIBRARY_PATH
      value: /usr/local/nvidia/lib64
    {{- if $gpudirect.probe }}
    - name: HEALTH_CHECK_LOG_FILE
      value: {{ $gpudirect.probe }}
    {{- end }}
  {{- if $gpudirect.probe }}
  # The daemon writes the file when it is ready, after about 30 s; the program starts then.
  startupProbe:
    exec:
      command: [cat, {{ $gpudirect.probe }}]
    initialDelaySeconds: 1
    periodSeconds: 5
    failureThreshold: 24
  {{- end }}
  securityContext:
    {{- if .Values.network.hostNetwork }}
    privileged: true
    {{- else }}
    allowPrivilegeEscalation: false
    {{- end }}
    capabilities:
      add: {{ toJson $gpudirect.capabilities }}
      {{- if not .Values.network.hostNetwork }}
      drop: [NET_RAW]
      {{- end }}
  volumeMounts:
    - name: nvidia-libraries
      mountPath: /usr/local/nvidia
    - name: sys
      mountPath: /hostsysfs
    - name: proc-sys
      mountPath: /hostprocsysfs
    {{- range $gpudirect.daemonMounts }}
    - name: {{ .name }}
      mountPath: {{ .mountPath }}
    {{- end }}
{{- end }}
{{- /* storage */}}
{{- if include "gke-a3high.ownFolders" . | trim }}
{{- $own := .Values.data.podSecurityContext }}
{{- $folders := include "gke-a3high.ownFolders" . | fromYamlArray }}
{{- $mounts := list }}
{{- range $folders }}{{ $mounts = append $mounts (regexFind "^/[^/]*" .) }}{{ end }}
# New storage belongs to root, and neither NFS nor every driver of claims knows fsGroup, which would also change what
# others have there. So root makes the folders of the program, and gives it those that are root's: these alone, and not
# what is in them. Whose folder it is decides, since this root is not asked for permission.
- name: own-folders
  image: {{ (include "gke-a3high.launcher" . | fromYaml).image | quote }}
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
    - {{ include "gke-a3high.literal" . }}
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
    - name: {{ include "gke-a3high.storeVolume" (list $ $role) }}
      mountPath: /{{ $role }}
      {{- with include "gke-a3high.storeSubPath" (list $ $role) }}
      subPath: {{ quote . }}
      {{- end }}
    {{- end }}
    {{- end }}
{{- end }}
{{- end }}
{{- define "gke-a3high.slot.securityContext" -}}
{{- if include "gke-a3high.gpu" . }}
{{- /* gpudirect */}}
{{- if .Values.network.hostNetwork }}
privileged: true
{{- else }}
capabilities:
  add: [IPC_LOCK]
{{- end }}
{{- end }}
{{- end }}
{{- define "gke-a3high.slot.labels" -}}
{{- if include "gke-a3high.gpu" . }}
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
{{- define "gke-a3high.slot.annotations" -}}
{{- if include "gke-a3high.gpu" . }}
{{- /* kueue */}}
{{- if .Values.queue.flexStart }}
provreq.kueue.x-k8s.io/maxRunDurationSeconds: {{ .Values.run.deadlineSeconds | int64 | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Variables of the program, each name once: fragments < launcher < user. */}}
{{- define "gke-a3high.env" -}}
{{- $env := dict }}
{{- range list (include "gke-a3high.slot.env" .) (include (printf "gke-a3high.launcher.%s.env" .Values.launcher) .) }}
{{- range . | fromYamlArray }}{{ $_ := set $env .name . }}{{ end }}
{{- end }}
{{- range $name, $value := .Values.env }}{{ $_ := set $env $name (dict "value" $value) }}{{ end }}
{{- range $name, $key := .Values.secretEnv }}
{{- $_ := set $env $name (dict "valueFrom" (dict "secretKeyRef" (dict "name" $key.secretName "key" $key.key))) }}
{{- end }}
{{- range $name, $entry := $env }}
- name: {{ $name }}
{{- if hasKey $entry "value" }}
  value: {{ include "gke-a3high.literal" $entry.value }}
{{- else }}
  valueFrom: {{- toYaml $entry.valueFrom | nindent 4 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gke-a3high.slot.env" }}
- name: NNODES
  value: {{ include "gke-a3high.nodes" . | quote }}
- name: NODE_RANK
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['{{ include "gke-a3high.gpu" . | empty | ternary "batch.kubernetes.io/job-completion-index" "batch.kubernetes.io/job-completion-index" }}']
{{- if include "gke-a3high.gpu" . }}
- name: GPUS_PER_NODE
  value: {{ include "gke-a3high.gpusPerNode" . | quote }}
- name: MASTER_ADDR
  value: {{ include "gke-a3high.rendezvous" . }}
- name: MASTER_PORT
  value: "6002"
- name: RUN_DIRECTORY
  value: {{ include "gke-a3high.runDirectory" . | quote }}
- name: CHECKPOINT_DIRECTORY
  value: {{ printf "%s/checkpoints" (include "gke-a3high.home" .) | quote }}
{{- if include "gke-a3high.staged" . }}
- name: STAGED_DATA
  {{- $paths := list }}
  {{- range include "gke-a3high.storedData" . | fromYamlArray }}{{ $paths = append $paths .path }}{{ end }}
  value: {{ join "\n" $paths | quote }}
{{- end }}
{{- end }}
{{- if not (include "gke-a3high.gpu" .) }}
# Its own user has no home in the image, and may have no name there.
- name: HOME
  value: /tmp
- name: USER
  value: data
{{- end }}
{{- $launcher := include "gke-a3high.launcher" . | fromYaml }}
{{- if eq $launcher.processes "workers" }}
- name: WORKERS
  value: {{ $launcher.workers | default 1 | int64 | quote }}
{{- end }}
{{- if include "gke-a3high.gpu" . }}
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
{{- range $name, $value := (include "gke-a3high.gpudirectVersion" . | fromYaml).settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- /* gpudirect-tcpx */}}
# NVIDIA's images preset another plugin from 26.06 on. A name is found by every NCCL: before 2.21 none takes a path.
- name: NCCL_NET_PLUGIN
  value: tcpx
- name: NCCL_PROTO
  value: Simple
- name: NCCL_DYNAMIC_CHUNK_SIZE
  value: "524288"
- name: NCCL_P2P_PXN_LEVEL
  value: "0"
- name: NCCL_SOCKET_NTHREADS
  value: "1"
- name: NCCL_NSOCKS_PERTHREAD
  value: "4"
- name: NCCL_GPUDIRECTTCPX_CTRL_DEV
  value: eth0
- name: NCCL_GPUDIRECTTCPX_SOCKET_IFNAME
  value: eth1,eth2,eth3,eth4
- name: NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX
  value: /run/tcpx
# The processors next to each interface, those that send and those that receive.
- name: NCCL_GPUDIRECTTCPX_TX_BINDINGS
  value: "eth1:8-21,112-125;eth2:8-21,112-125;eth3:60-73,164-177;eth4:60-73,164-177"
- name: NCCL_GPUDIRECTTCPX_RX_BINDINGS
  value: "eth1:22-35,126-139;eth2:22-35,126-139;eth3:74-87,178-191;eth4:74-87,178-191"
{{- end }}
{{- end }}

{{/* The pod of the program: one for each machine of the run. */}}
{{- define "gke-a3high.pod" -}}
{{- $launcher := include "gke-a3high.launcher" . | fromYaml -}}
metadata:
  labels:
    {{- include "gke-a3high.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $launcher.task }}
    run: {{ include "gke-a3high.run" . }}
    {{- with include "gke-a3high.merge" (list (toYaml .Values.podLabels) (include "gke-a3high.slot.podLabels" .)) }}
    {{- . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: workload
    {{- with include "gke-a3high.merge" (list (toYaml .Values.podAnnotations) (include "gke-a3high.slot.podAnnotations" .)) }}
    {{- . | nindent 4 }}
    {{- end }}
spec:
  {{- if include "gke-a3high.gpu" . }}
  subdomain: {{ include "gke-a3high.run" . }}
  {{- end }}
  restartPolicy: Never
  terminationGracePeriodSeconds: {{ .Values.run.gracePeriodSeconds | int64 }}
  {{- include "gke-a3high.account" . | nindent 2 }}
  securityContext:
    {{- include "gke-a3high.podSecurityContext" . | trim | nindent 4 }}
  {{- if include "gke-a3high.gpu" . }}
  {{- /* gpudirect */}}
  {{- if .Values.network.hostNetwork }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
  {{- end }}
  {{- with include "gke-a3high.merge" (list (toYaml .Values.nodeSelector) (include "gke-a3high.slot.nodeSelector" .)) }}
  nodeSelector:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with concat (include "gke-a3high.tolerations" . | fromYamlArray) .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  affinity:
    {{- include "gke-a3high.affinity" . | nindent 4 }}
  volumes:
    - name: start
      configMap:
        name: {{ include "gke-a3high.run" . }}
    {{- if include "gke-a3high.ownTmp" . }}
    - name: data-tmp
      emptyDir: {}
    {{- end }}
    {{- if include "gke-a3high.gpu" . }}
    {{- /* shared-memory */}}
    - name: shared-memory
      emptyDir:
        medium: Memory
        sizeLimit: {{ .Values.sharedMemory | quote }}
    {{- /* gpudirect */}}
    - name: nvidia-libraries
      hostPath:
        path: /home/kubernetes/bin/nvidia
    - name: sys
      hostPath:
        path: /sys
    - name: proc-sys
      hostPath:
        path: /proc/sys
    - name: nccl-plugin
      emptyDir: {}
    {{- /* gpudirect-tcpx */}}
    # Private to the pod, so that no run finds the sockets of one that ended.
    - name: tcpx-socket
      emptyDir: {}
    {{- end }}
    {{- /* storage-pvc */}}
    {{- range $role, $store := .Values.storage }}
    {{- if and (hasPrefix "pvc://" $store.from) (eq $role (include "gke-a3high.storeVolume" (list $ $role))) }}
    - name: {{ $role }}
      persistentVolumeClaim:
        claimName: {{ include "gke-a3high.storeName" $store.from | quote }}
    {{- end }}
    {{- end }}
    {{- /* storage-nfs */}}
    {{- range $role, $store := .Values.storage }}
    {{- if hasPrefix "nfs://" $store.from }}
    - name: {{ $role }}
      nfs:
        server: {{ include "gke-a3high.storeName" $store.from | quote }}
        path: {{ printf "/%s" (include "gke-a3high.storePath" $store.from) | quote }}
        {{- if $store.readOnly }}
        readOnly: true
        {{- end }}
    {{- end }}
    {{- end }}
    {{- /* storage-gcs */}}
    # Named after the role: bucket names hold dots and underscores, and two roles may use one bucket.
    {{- range $role, $store := .Values.storage }}
    {{- if hasPrefix "gs://" $store.from }}
    - name: {{ $role }}
      csi:
        driver: gcsfuse.csi.storage.gke.io
        {{- if $store.readOnly }}
        readOnly: true
        {{- end }}
        volumeAttributes:
          bucketName: {{ include "gke-a3high.storeName" $store.from | quote }}
          {{- $path := include "gke-a3high.storePath" $store.from }}
          {{- $options := list $store.mountOptions (empty $path | ternary "" (printf "only-dir=%s" $path)) }}
          {{- /* Its files belong to whom the mount says, root if nothing else; with fsGroup the driver says the group. */}}
          {{- $own := $.Values.data.podSecurityContext }}
          {{- if not (or (include "gke-a3high.gpu" $) (regexMatch "(^|,)[ug]id=" $store.mountOptions)) }}
          {{- with $own.runAsUser }}{{ $options = append $options (printf "uid=%d" (int64 .)) }}{{ end }}
          {{- if and $own.runAsGroup (kindIs "invalid" $own.fsGroup) }}
          {{- $options = append $options (printf "gid=%d" (int64 $own.runAsGroup)) }}
          {{- end }}
          {{- end }}
          {{- with compact $options }}
          mountOptions: {{ join "," . | quote }}
          {{- end }}
    {{- end }}
    {{- end }}
    {{- /* storage-disk */}}
    {{- range $role, $store := .Values.storage }}
    {{- if hasPrefix "disk://" $store.from }}
    - name: {{ $role }}
      {{- if include "gke-a3high.gpu" $ }}
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
  {{- with include "gke-a3high.slot.initContainers" . | trim }}
  initContainers:
    {{- . | nindent 4 }}
  {{- end }}
  containers:
    - name: workload
      image: {{ $launcher.image | quote }}
      imagePullPolicy: {{ .Values.imagePullPolicy }}
      command: [bash, /etc/chartgen/start.sh]
      args:
        - {{ include "gke-a3high.literal" $launcher.program }}
        {{- range include (printf "gke-a3high.launcher.%s.args" .Values.launcher) . | fromYamlArray }}
        - {{ include "gke-a3high.literal" . }}
        {{- end }}
        {{- range $launcher.args }}
        - {{ include "gke-a3high.literal" . }}
        {{- end }}
      env:
        {{- include "gke-a3high.env" . | trim | nindent 8 }}
      {{- if include "gke-a3high.gpu" . }}
      ports:
        - name: rendezvous
          containerPort: 6002
      {{- end }}
      resources:
        {{- $gpus := include "gke-a3high.slot.resourceLimits" . | fromYaml }}
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
        {{- include "gke-a3high.securityContext" . | nindent 8 }}
      volumeMounts:
        - name: start
          mountPath: /etc/chartgen
          readOnly: true
        {{- if include "gke-a3high.ownTmp" . }}
        - name: data-tmp
          mountPath: /tmp
        {{- end }}
        {{- if include "gke-a3high.gpu" . }}
        {{- /* shared-memory */}}
        - name: shared-memory
          mountPath: /dev/shm
        {{- /* gpudirect-tcpx */}}
        - name: nccl-plugin
          mountPath: /usr/local/tcpx
        - name: tcpx-socket
          mountPath: /run/tcpx
        {{- end }}
        {{- /* storage */}}
        {{- $own := include (printf "gke-a3high.launcher.%s.mounts" .Values.launcher) . | fromYamlArray }}
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
        - name: {{ include "gke-a3high.storeVolume" (list $ $role) }}
          mountPath: {{ .mountPath }}
          {{- with prepend (rest $parts) (include "gke-a3high.storeSubPath" (list $ $role)) | compact | join "/" }}
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
{{- define "gke-a3high.tolerations" -}}
{{- if include "gke-a3high.gpu" . }}
{{- /* nvidia-gpu */}}
- key: nvidia.com/gpu
  operator: Exists
{{- end }}
{{- /* gke-nodes */}}
- key: cloud.google.com/impending-node-termination
  operator: Exists
{{- end }}
