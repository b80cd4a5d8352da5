{{/*
Name of the release's objects. 63 characters, less 9 for the run's digest and 22 for what controllers add to a pod's
name: -workload-0-<four digits>-<five letters>.
*/}}
{{- define "gke-a3mega.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}
{{- .Release.Name | replace "." "-" | trunc 32 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name .Chart.Name | replace "." "-" | trunc 32 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Labels that select the release's pods; they never change within a release. */}}
{{- define "gke-a3mega.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "gke-a3mega.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "gke-a3mega.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Whom a pod acts as: no key to the cluster, and the secrets that its images are pulled with. */}}
{{- define "gke-a3mega.account" -}}
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

{{/* Merges maps given as YAML texts, the first one wins; nothing when all are empty. */}}
{{- define "gke-a3mega.merge" -}}
{{- $merged := dict }}
{{- range . }}
{{- $map := . | fromYaml }}
{{- if hasKey $map "Error" }}{{ fail (printf "not a map of keys: %q (%s)" (trim . | trunc 80) $map.Error) }}{{ end }}
{{- $merged = merge $merged $map }}
{{- end }}
{{- with $merged }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* Text that Kubernetes hands on unchanged: it replaces $(NAME) in arguments and variables, and $$ by one $. */}}
{{- define "gke-a3mega.literal" -}}
{{- . | toString | replace "$" "$$" | toJson }}
{{- end }}

{{/*
Exit codes after which no other start can succeed: 17 not-a-number, 78 network-contract, 93 no-progress.
*/}}
{{- define "gke-a3mega.finalExits" -}}[17, 78, 93]{{- end }}
