{{/* Volumes of the pod: the run's files, what fragments need, and the user's. */}}
{{- define "eks-p6e-gb200.volumes" }}
- name: start
  configMap:
    name: {{ .Run.name }}
{{- if include "eks-p6e-gb200.ownTmp" . }}
- name: data-tmp
  emptyDir: {}
{{- end }}
{{- if .Run.gpu }}
{{- /* shared-memory */}}
- name: shared-memory
  emptyDir:
    medium: Memory
    sizeLimit: {{ .Values.sharedMemory | quote }}
{{- end }}
{{- /* storage-pvc */}}
{{- range $role, $store := .Values.storage }}
{{- if and (hasPrefix "pvc://" $store.from) (eq $role (include "eks-p6e-gb200.storeVolume" (list $ $role))) }}
- name: {{ $role }}
  persistentVolumeClaim:
    claimName: {{ include "eks-p6e-gb200.storeName" $store.from | quote }}
{{- end }}
{{- end }}
{{- /* storage-nfs */}}
{{- range $role, $store := .Values.storage }}{{ if hasPrefix "nfs://" $store.from }}
- name: {{ $role }}
  nfs:
    server: {{ include "eks-p6e-gb200.storeName" $store.from | quote }}
    path: {{ printf "/%s" (include "eks-p6e-gb200.storePath" $store.from) | quote }}
    {{- if $store.readOnly }}
    readOnly: true
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
{{- define "eks-p6e-gb200.volumeMounts" }}
- name: start
  mountPath: /etc/chartgen
  readOnly: true
{{- if include "eks-p6e-gb200.ownTmp" . }}
- name: data-tmp
  mountPath: /tmp
{{- end }}
{{- if .Run.gpu }}
{{- /* shared-memory */}}
- name: shared-memory
  mountPath: /dev/shm
{{- end }}
{{- /* storage */}}
{{- range $role, $store := .Values.storage }}
- name: {{ include "eks-p6e-gb200.storeVolume" (list $ $role) }}
  mountPath: /{{ $role }}
  {{- with include "eks-p6e-gb200.storeSubPath" (list $ $role) }}
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
