{{/* Volumes of the pod: the run's files, what fragments need, and the user's. */}}
{{- define "gke-a3mega.volumes" }}
- name: start
  configMap:
    name: {{ .Run.name }}
{{- if include "gke-a3mega.ownTmp" . }}
- name: data-tmp
  emptyDir: {}
{{- end }}
{{- if .Run.gpu }}
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
{{- /* gpudirect-tcpxo */}}
- name: aperture-devices
  hostPath:
    path: /dev/aperture_devices
{{- end }}
{{- /* storage-pvc */}}
{{- range $role, $store := .Values.storage }}
{{- if and (hasPrefix "pvc://" $store.from) (eq $role (include "gke-a3mega.storeVolume" (list $ $role))) }}
- name: {{ $role }}
  persistentVolumeClaim:
    claimName: {{ include "gke-a3mega.storeName" $store.from | quote }}
{{- end }}
{{- end }}
{{- /* storage-nfs */}}
{{- range $role, $store := .Values.storage }}{{ if hasPrefix "nfs://" $store.from }}
- name: {{ $role }}
  nfs:
    server: {{ include "gke-a3mega.storeName" $store.from | quote }}
    path: {{ printf "/%s" (include "gke-a3mega.storePath" $store.from) | quote }}
    {{- if $store.readOnly }}
    readOnly: true
    {{- end }}
{{- end }}{{ end }}
{{- /* storage-gcs */}}
# Named after the role: bucket names may contain dots and underscores, and two roles may use one bucket.
{{- range $role, $store := .Values.storage }}{{ if hasPrefix "gs://" $store.from }}
- name: {{ $role }}
  csi:
    driver: gcsfuse.csi.storage.gke.io
    {{- if $store.readOnly }}
    readOnly: true
    {{- end }}
    volumeAttributes:
      bucketName: {{ include "gke-a3mega.storeName" $store.from | quote }}
      {{- $path := include "gke-a3mega.storePath" $store.from }}
      {{- $options := list $store.mountOptions (empty $path | ternary "" (printf "only-dir=%s" $path)) }}
      {{- /* The mount options set the owner of the files, root by default; with fsGroup the driver sets the group. */}}
      {{- $own := $.Values.data.podSecurityContext }}
      {{- if not (or $.Run.gpu (regexMatch "(^|,)[ug]id=" $store.mountOptions)) }}
      {{- with $own.runAsUser }}{{ $options = append $options (printf "uid=%d" (int64 .)) }}{{ end }}
      {{- if and $own.runAsGroup (kindIs "invalid" $own.fsGroup) }}
      {{- $options = append $options (printf "gid=%d" (int64 $own.runAsGroup)) }}
      {{- end }}
      {{- end }}
      {{- with compact $options }}
      mountOptions: {{ join "," . | quote }}
      {{- end }}
{{- end }}{{ end }}
{{- /* storage-disk */}}
{{- range $role, $store := .Values.storage }}{{ if hasPrefix "disk://" $store.from }}
- name: {{ $role }}
  {{- if $.Run.gpu }}
  hostPath:
    path: {{ $.Values.localDisk | quote }}
    # A machine without local disks refuses the pod instead of filling its boot disk.
    type: Directory
  {{- else }}
  # Programs without GPUs run on machines that need not have such disks.
  emptyDir: {}
  {{- end }}
{{- end }}{{ end }}
{{- /* storage-memory */}}
{{- range $role, $store := .Values.storage }}{{ if hasPrefix "memory://" $store.from }}
- name: {{ $role }}
  emptyDir:
    medium: Memory
{{- end }}{{ end }}
{{- with .Values.extraVolumes }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{/* Where the program's container has them. */}}
{{- define "gke-a3mega.volumeMounts" }}
- name: start
  mountPath: /etc/chartgen
  readOnly: true
{{- if include "gke-a3mega.ownTmp" . }}
- name: data-tmp
  mountPath: /tmp
{{- end }}
{{- if .Run.gpu }}
{{- /* shared-memory */}}
- name: shared-memory
  mountPath: /dev/shm
{{- /* gpudirect-tcpxo */}}
- name: nccl-plugin
  mountPath: /usr/local/nccl-plugin
- name: aperture-devices
  mountPath: /dev/aperture_devices
{{- end }}
{{- /* storage */}}
{{- range $role, $store := .Values.storage }}
- name: {{ include "gke-a3mega.storeVolume" (list $ $role) }}
  mountPath: /{{ $role }}
  {{- with include "gke-a3mega.storeSubPath" (list $ $role) }}
  subPath: {{ quote . }}
  {{- end }}
  {{- if $store.readOnly }}
  readOnly: true
  {{- end }}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}
