{{/* Name of what a claim's storage is made of, unique in the cluster: a volume, a class. Takes (list context claim). */}}
{{- define "<%= chart %>.claimStorage" -}}
{{- printf "%s-%s" (index . 0).Release.Namespace (index . 1) | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Size of a claim. A share's real size is the server's; Kubernetes only compares claim and volume. */}}
{{- define "<%= chart %>.claimSize" -}}
{{- .size | default "1Ti" }}
{{- end }}
