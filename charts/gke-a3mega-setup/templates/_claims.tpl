{{/* Name of what a claim's storage is made of, unique in the cluster: a volume, a class. Takes (list context claim). */}}
{{- define "gke-a3mega-setup.claimStorage" -}}
{{- printf "%s-%s" (index . 0).Release.Namespace (index . 1) | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Size of a claim. A share's real size is the server's; Kubernetes only compares claim and volume. */}}
{{- define "gke-a3mega-setup.claimSize" -}}
{{- .size | default "1Ti" }}
{{- end }}

{{/* A class of one claim's own, but for who makes its volume. Takes (list context claim). */}}
{{- define "gke-a3mega-setup.claimClass" -}}
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: {{ include "gke-a3mega-setup.claimStorage" . | quote }}
  labels:
    {{- include "gke-a3mega-setup.labels" (index . 0) | nindent 4 }}
# The volume takes minutes to create: now, instead of when the first pod already occupies its GPUs.
volumeBindingMode: Immediate
{{- end }}
