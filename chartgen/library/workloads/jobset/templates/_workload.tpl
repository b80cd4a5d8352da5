{{/* Address of the first machine; JobSet makes the headless Service of its own name. */}}
{{- define "<%= chart %>.rendezvous" -}}
{{- printf "%s-<%= container %>-0-0.%s" .Run.name .Run.name }}
{{- end }}

{{/* Field of a pod with the number of its attempt, in which JobSet counts failures only. */}}
{{- define "<%= chart %>.attempt" -}}
metadata.labels['jobset.sigs.k8s.io/restart-attempt']
{{- end }}

{{/* With spares each start of the processes counts, of which ft_launcher makes several in an attempt. */}}
{{- define "<%= chart %>.beforeProcess" }}
{{- if and .Run.mustProgress .Values.run.spares }}
RESTART_ATTEMPT=$((RESTART_ATTEMPT * 100 + TORCHELASTIC_RESTART_COUNT))
(
{{ .Files.Get "files/progress.sh" | trim }}
) || end "$?"
{{- end }}
{{- end }}

{{/* What the run is. `suspend` is Kueue's to set, and a TTL here would let an unchanged upgrade start the run again. */}}
{{- define "<%= chart %>.kindSpec" -}}
network:
  enableDNSHostnames: true
  publishNotReadyAddresses: true
successPolicy:
  operator: All
failurePolicy:
  maxRestarts: {{ .Run.restarts }}
  {{- if .Run.restarts }}
  rules:
    - name: final
      action: FailJobSet
      onJobFailureReasons: [PodFailurePolicy, DeadlineExceeded]
  {{- end }}
replicatedJobs:
  - name: <%= container %>
    replicas: 1
    template:
<% if workload == "trainjob" %>
      metadata:
        labels:
          # By it Trainer's own tools know the pods that train.
          trainer.kubeflow.org/trainjob-ancestor-step: trainer
<% endif %>
      spec:
<%= job(8) %>
        {{- with .Values.run.ttlSecondsAfterFinished }}
        ttlSecondsAfterFinished: {{ . | int64 }}
        {{- end }}
<%= slot("workloadSpec.yaml", 0) %>
{{- end }}
