{{/* Name of what a claim's storage is made of, unique in the cluster: a volume, a class. Takes (list context claim). */}}
{{- define "oke-h100-setup.claimStorage" -}}
{{- printf "%s-%s" (index . 0).Release.Namespace (index . 1) | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Size of a claim. A share's real size is the server's; Kubernetes only compares claim and volume. */}}
{{- define "oke-h100-setup.claimSize" -}}
{{- .size | default "1Ti" }}
{{- end }}

{{/* A volume for one claim only, without its storage. Takes (list context claim values). */}}
{{- define "oke-h100-setup.claimVolume" -}}
apiVersion: v1
kind: PersistentVolume
metadata:
  name: {{ include "oke-h100-setup.claimStorage" . | quote }}
  labels:
    {{- include "oke-h100-setup.labels" (index . 0) | nindent 4 }}
  annotations:
    helm.sh/resource-policy: keep
spec:
  accessModes: [ReadWriteMany]
  capacity:
    storage: {{ include "oke-h100-setup.claimSize" (index . 2) }}
  persistentVolumeReclaimPolicy: Retain
  storageClassName: ""
  claimRef:
    namespace: {{ (index . 0).Release.Namespace | quote }}
    name: {{ index . 1 | quote }}
{{- end }}
