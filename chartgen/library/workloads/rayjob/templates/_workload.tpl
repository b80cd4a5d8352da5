{{/* What the run is. `suspend` is Kueue's to set. The submitter's pod, and the program's log in it, stay after the end. */}}
{{- define "<%= chart %>.kindSpec" -}}
entrypoint: bash /etc/chartgen/driver.sh
submissionMode: K8sJobMode
# Frees the machines; Kueue asks for it too.
shutdownAfterJobFinishes: true
# A new attempt is a new cluster.
backoffLimit: {{ .Values.run.maxRestarts | int64 }}
{{- with .Values.run.deadlineSeconds }}
activeDeadlineSeconds: {{ . | int64 }}
{{- end }}
submitterPodTemplate:
  {{- include "<%= chart %>.submitter" . | nindent 2 }}
rayClusterSpec:
  {{- with .Values.ray.version }}
  rayVersion: {{ quote . }}
  {{- end }}
  headGroupSpec:
    rayStartParams:
      # Tasks and actors run on the machines alone.
      num-cpus: "0"
      num-gpus: "0"
    template:
      {{- include "<%= chart %>.head" . | nindent 6 }}
  workerGroupSpecs:
    - groupName: <%= container %>
      replicas: {{ include "<%= chart %>.nodes" . }}
      minReplicas: {{ include "<%= chart %>.nodes" . }}
      maxReplicas: {{ include "<%= chart %>.nodes" . }}
      rayStartParams:
        num-gpus: {{ include "<%= chart %>.gpusPerNode" . | quote }}
      template:
        {{- include "<%= chart %>.pod" . | nindent 8 }}
<%= slot("workloadSpec.yaml", 0) %>
{{- end }}
