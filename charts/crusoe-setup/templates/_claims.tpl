{{/* Name of what a claim's storage is made of, unique in the cluster: a volume, a class. Takes (list context claim). */}}
{{- define "crusoe-setup.claimStorage" -}}
{{- printf "%s-%s" (index . 0).Release.Namespace (index . 1) | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Size of a claim. A share's real size is the server's; Kubernetes only compares claim and volume. */}}
{{- define "crusoe-setup.claimSize" -}}
{{- .size | default "1Ti" }}
{{- end }}

{{/* A volume for one claim only, without its storage. Takes (list context claim values). */}}
{{- define "crusoe-setup.claimVolume" -}}
apiVersion: v1
kind: PersistentVolume
metadata:
  name: {{ include "crusoe-setup.claimStorage" . | quote }}
  labels:
    {{- include "crusoe-setup.labels" (index . 0) | nindent 4 }}
  annotations:
    helm.sh/resource-policy: keep
spec:
  accessModes: [ReadWriteMany]
  capacity:
    storage: {{ include "crusoe-setup.claimSize" (index . 2) }}
  persistentVolumeReclaimPolicy: Retain
  storageClassName: ""
  claimRef:
    namespace: {{ (index . 0).Release.Namespace | quote }}
    name: {{ index . 1 | quote }}
{{- end }}
