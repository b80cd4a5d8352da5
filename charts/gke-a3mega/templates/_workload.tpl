{{/* Address of the first machine; JobSet makes the headless Service of its own name. */}}
{{- define "gke-a3mega.rendezvous" -}}
{{- printf "%s-workload-0-0.%s" (include "gke-a3mega.run" .) (include "gke-a3mega.run" .) }}
{{- end }}

{{/* What the run is. `suspend` is Kueue's to set, and a TTL here would let an unchanged upgrade start the run again. */}}
{{- define "gke-a3mega.kindSpec" -}}
network:
  enableDNSHostnames: true
  publishNotReadyAddresses: true
successPolicy:
  operator: All
failurePolicy:
  maxRestarts: {{ .Values.run.maxRestarts | int64 }}
  {{- if and .Values.run.maxRestarts (include "gke-a3mega.transportFails" .) }}
  rules:
    - name: transport
      action: FailJobSet
      onJobFailureReasons: [PodFailurePolicy]
  {{- end }}
replicatedJobs:
  - name: workload
    replicas: 1
    template:
      spec:
        {{- include "gke-a3mega.job" . | nindent 8 }}
        {{- with .Values.run.ttlSecondsAfterFinished }}
        ttlSecondsAfterFinished: {{ . | int64 }}
        {{- end }}

{{- end }}
