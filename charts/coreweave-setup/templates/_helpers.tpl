{{/* Name of the chart. */}}
{{- define "coreweave-setup.name" -}}
{{- .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Chart name and version, as a label. */}}
{{- define "coreweave-setup.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Labels that select the release's pods; they never change within a release. */}}
{{- define "coreweave-setup.selectorLabels" -}}
app.kubernetes.io/name: {{ include "coreweave-setup.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "coreweave-setup.labels" -}}
helm.sh/chart: {{ include "coreweave-setup.chart" . }}
{{ include "coreweave-setup.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Whom a pod acts as: no key to the cluster, and the secrets that its images are pulled with. */}}
{{- define "coreweave-setup.account" -}}
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
