{{/* Name of the chart. */}}
{{- define "eks-p6e-gb200-setup.name" -}}
{{- .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Chart name and version, as a label. */}}
{{- define "eks-p6e-gb200-setup.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Labels that select the release's pods; they never change within a release. */}}
{{- define "eks-p6e-gb200-setup.selectorLabels" -}}
app.kubernetes.io/name: {{ include "eks-p6e-gb200-setup.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "eks-p6e-gb200-setup.labels" -}}
helm.sh/chart: {{ include "eks-p6e-gb200-setup.chart" . }}
{{ include "eks-p6e-gb200-setup.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Whom a pod acts as: no key to the cluster, and the secrets that its images are pulled with. */}}
{{- define "eks-p6e-gb200-setup.account" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.serviceAccount }}
serviceAccountName: {{ . | quote }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end }}
