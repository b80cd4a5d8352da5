{{/* Volumes of the pod: the run's files, what fragments need, and the user's. */}}
{{- define "oke-h100.volumes" }}
- name: start
  configMap:
    name: {{ .Run.name }}
{{- if include "oke-h100.ownTmp" . }}
- name: data-tmp
  emptyDir: {}
{{- end }}
{{- if .Run.gpu }}
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
    name: {{ .Run.name }}-nccl
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
{{- range $role, $store := .Values.storage }}{{ if hasPrefix "nfs://" $store.from }}
- name: {{ $role }}
  nfs:
    server: {{ include "oke-h100.storeName" $store.from | quote }}
    path: {{ printf "/%s" (include "oke-h100.storePath" $store.from) | quote }}
    {{- if $store.readOnly }}
    readOnly: true
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
{{- define "oke-h100.volumeMounts" }}
- name: start
  mountPath: /etc/chartgen
  readOnly: true
{{- if include "oke-h100.ownTmp" . }}
- name: data-tmp
  mountPath: /tmp
{{- end }}
{{- if .Run.gpu }}
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
{{- range $role, $store := .Values.storage }}
- name: {{ include "oke-h100.storeVolume" (list $ $role) }}
  mountPath: /{{ $role }}
  {{- with include "oke-h100.storeSubPath" (list $ $role) }}
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
