{{/* Maps that fragments fill; the user's values of the same name win over them. */}}
{{- define "oke-h100.slot.podAnnotations" -}}
{{- if include "oke-h100.gpu" . }}
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
{{- define "oke-h100.slot.podLabels" -}}
{{- end }}
{{- define "oke-h100.slot.nodeSelector" -}}
{{- if include "oke-h100.gpu" . }}
{{- /* instance-type */}}
node.kubernetes.io/instance-type: {{ .Values.machineType }}
{{- end }}
{{- end }}
{{- define "oke-h100.slot.affinity" -}}
{{- end }}
{{- define "oke-h100.slot.initContainers" -}}
{{- /* storage */}}
{{- if include "oke-h100.ownFolders" . | trim }}
{{- $own := .Values.data.podSecurityContext }}
{{- $folders := include "oke-h100.ownFolders" . | fromYamlArray }}
{{- $mounts := list }}
{{- range $folders }}{{ $mounts = append $mounts (regexFind "^/[^/]*" .) }}{{ end }}
# New storage belongs to root, and neither NFS nor every driver of claims knows fsGroup, which would also change what
# others have there. So root makes the folders of the program, and gives it those that are root's: these alone, and not
# what is in them. Whose folder it is decides, since this root is not asked for permission.
- name: own-folders
  image: {{ (include "oke-h100.launcher" . | fromYaml).image | quote }}
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
    - {{ include "oke-h100.literal" . }}
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
    - name: {{ include "oke-h100.storeVolume" (list $ $role) }}
      mountPath: /{{ $role }}
      {{- with include "oke-h100.storeSubPath" (list $ $role) }}
      subPath: {{ quote . }}
      {{- end }}
    {{- end }}
    {{- end }}
{{- end }}
{{- end }}
{{- define "oke-h100.slot.securityContext" -}}
{{- if include "oke-h100.gpu" . }}
{{- /* roce-oke */}}
{{- if eq .Values.network.mode "host" }}
privileged: true
{{- end }}
capabilities:
  add: [IPC_LOCK]
{{- end }}
{{- end }}
{{- define "oke-h100.slot.labels" -}}
{{- end }}
{{- define "oke-h100.slot.annotations" -}}
{{- end }}

{{/* Devices that fragments claim for the pod; the program's container uses all of them. */}}
{{- define "oke-h100.slot.resourceClaims" -}}
{{- if include "oke-h100.gpu" . }}
{{- /* compute-domain */}}
{{- if include "oke-h100.computeDomain" . }}
- name: compute-domain-channel
  resourceClaimTemplateName: {{ include "oke-h100.run" . }}-channel
{{- end }}
{{- end }}
{{- end }}

{{/* Variables of the program, each name once: fragments < launcher < user. */}}
{{- define "oke-h100.env" -}}
{{- $env := dict }}
{{- range list (include "oke-h100.slot.env" .) (include (printf "oke-h100.launcher.%s.env" .Values.launcher) .) }}
{{- range . | fromYamlArray }}{{ $_ := set $env .name . }}{{ end }}
{{- end }}
{{- range $name, $value := .Values.env }}{{ $_ := set $env $name (dict "value" $value) }}{{ end }}
{{- range $name, $key := .Values.secretEnv }}
{{- $_ := set $env $name (dict "valueFrom" (dict "secretKeyRef" (dict "name" $key.secretName "key" $key.key))) }}
{{- end }}
{{- range $name, $entry := $env }}
- name: {{ $name }}
{{- if hasKey $entry "value" }}
  value: {{ include "oke-h100.literal" $entry.value }}
{{- else }}
  valueFrom: {{- toYaml $entry.valueFrom | nindent 4 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "oke-h100.slot.env" }}
- name: NNODES
  value: {{ include "oke-h100.nodes" . | quote }}
- name: NODE_RANK
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['{{ include "oke-h100.gpu" . | empty | ternary "batch.kubernetes.io/job-completion-index" "volcano.sh/task-index" }}']
{{- if include "oke-h100.gpu" . }}
- name: GPUS_PER_NODE
  value: {{ include "oke-h100.gpusPerNode" . | quote }}
- name: MASTER_ADDR
  value: {{ include "oke-h100.rendezvous" . }}
- name: MASTER_PORT
  value: "6002"
- name: RUN_DIRECTORY
  value: {{ include "oke-h100.runDirectory" . | quote }}
- name: CHECKPOINT_DIRECTORY
  value: {{ printf "%s/checkpoints" (include "oke-h100.home" .) | quote }}
{{- if include "oke-h100.staged" . }}
- name: STAGED_DATA
  {{- $paths := list }}
  {{- range include "oke-h100.storedData" . | fromYamlArray }}{{ $paths = append $paths .path }}{{ end }}
  value: {{ join "\n" $paths | quote }}
{{- end }}
{{- end }}
{{- if not (include "oke-h100.gpu" .) }}
# Its own user has no home in the image, and may have no name there.
- name: HOME
  value: /tmp
- name: USER
  value: data
{{- end }}
{{- $launcher := include "oke-h100.launcher" . | fromYaml }}
{{- if eq $launcher.processes "workers" }}
- name: WORKERS
  value: {{ $launcher.workers | default 1 | int64 | quote }}
{{- end }}
{{- if include "oke-h100.gpu" . }}
{{- /* roce-oke */}}
- name: GLOO_SOCKET_IFNAME
  value: {{ .Values.network.interface | quote }}
- name: TP_SOCKET_IFNAME
  value: {{ .Values.network.interface | quote }}
{{- $fabric := include "oke-h100.roceFabric" . | fromYaml }}
{{- $settings := include "oke-h100.roceSettings" . | fromYaml }}
# In /etc/nccl.conf too, where a variable of the image would win: NVIDIA's preset another plugin from 26.06 on.
- name: NCCL_NET_PLUGIN
  value: {{ (get $settings.nccl $fabric.settings).NCCL_NET_PLUGIN | default "none" }}
{{- range $name, $value := get $settings.env $fabric.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The pod of the program: one for each machine of the run. */}}
{{- define "oke-h100.pod" -}}
{{- $launcher := include "oke-h100.launcher" . | fromYaml -}}
metadata:
  labels:
    {{- include "oke-h100.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $launcher.task }}
    run: {{ include "oke-h100.run" . }}
    {{- with include "oke-h100.merge" (list (toYaml .Values.podLabels) (include "oke-h100.slot.podLabels" .)) }}
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
  {{- if include "oke-h100.gpu" . }}
  {{- /* roce-oke */}}
  {{- if eq .Values.network.mode "host" }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
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
    {{- include "oke-h100.affinity" . | nindent 4 }}
  volumes:
    - name: start
      configMap:
        name: {{ include "oke-h100.run" . }}
    {{- if include "oke-h100.ownTmp" . }}
    - name: data-tmp
      emptyDir: {}
    {{- end }}
    {{- if include "oke-h100.gpu" . }}
    {{- /* shared-memory */}}
    - name: shared-memory
      emptyDir:
        medium: Memory
        sizeLimit: {{ .Values.sharedMemory | quote }}
    {{- /* roce-oke */}}
    {{- if eq .Values.network.mode "host" }}
    - name: infiniband
      hostPath:
        path: /dev/infiniband
        # A machine without RDMA adapters refuses the pod.
        type: Directory
    {{- end }}
    - name: nccl-conf
      configMap:
        name: {{ include "oke-h100.run" . }}-nccl
    {{- end }}
    {{- /* storage-pvc */}}
    {{- range $role, $store := .Values.storage }}
    {{- if and (hasPrefix "pvc://" $store.from) (eq $role (include "oke-h100.storeVolume" (list $ $role))) }}
    - name: {{ $role }}
      persistentVolumeClaim:
        claimName: {{ include "oke-h100.storeName" $store.from | quote }}
    {{- end }}
    {{- end }}
    {{- /* storage-nfs */}}
    {{- range $role, $store := .Values.storage }}
    {{- if hasPrefix "nfs://" $store.from }}
    - name: {{ $role }}
      nfs:
        server: {{ include "oke-h100.storeName" $store.from | quote }}
        path: {{ printf "/%s" (include "oke-h100.storePath" $store.from) | quote }}
        {{- if $store.readOnly }}
        readOnly: true
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
  {{- with include "oke-h100.slot.resourceClaims" . | fromYamlArray }}
  resourceClaims:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "oke-h100.slot.initContainers" . | trim }}
  initContainers:
    {{- . | nindent 4 }}
  {{- end }}
  containers:
    - name: workload
      image: {{ $launcher.image | quote }}
      imagePullPolicy: {{ .Values.imagePullPolicy }}
      command: [bash, /etc/chartgen/start.sh]
      args:
        - {{ include "oke-h100.literal" $launcher.program }}
        {{- range include (printf "oke-h100.launcher.%s.args" .Values.launcher) . | fromYamlArray }}
        - {{ include "oke-h100.literal" . }}
        {{- end }}
        {{- range $launcher.args }}
        - {{ include "oke-h100.literal" . }}
        {{- end }}
      env:
        {{- include "oke-h100.env" . | trim | nindent 8 }}
      {{- if include "oke-h100.gpu" . }}
      ports:
        - name: rendezvous
          containerPort: 6002
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
        - name: start
          mountPath: /etc/chartgen
          readOnly: true
        {{- if include "oke-h100.ownTmp" . }}
        - name: data-tmp
          mountPath: /tmp
        {{- end }}
        {{- if include "oke-h100.gpu" . }}
        {{- /* shared-memory */}}
        - name: shared-memory
          mountPath: /dev/shm
        {{- /* roce-oke */}}
        {{- if eq .Values.network.mode "host" }}
        - name: infiniband
          mountPath: /dev/infiniband
        {{- end }}
        - name: nccl-conf
          mountPath: /etc/nccl.conf
          subPath: nccl.conf
          readOnly: true
        {{- end }}
        {{- /* storage */}}
        {{- $own := include (printf "oke-h100.launcher.%s.mounts" .Values.launcher) . | fromYamlArray }}
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
        - name: {{ include "oke-h100.storeVolume" (list $ $role) }}
          mountPath: {{ .mountPath }}
          {{- with prepend (rest $parts) (include "oke-h100.storeSubPath" (list $ $role)) | compact | join "/" }}
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
{{- define "oke-h100.tolerations" -}}
{{- if include "oke-h100.gpu" . }}
{{- /* nvidia-gpu */}}
- key: nvidia.com/gpu
  operator: Exists
{{- end }}
{{- end }}
