{{/* What the run is. `suspend` is Kueue's to set. The submitter's pod, and the program's log in it, stay after the end. */}}
{{- define "<%= chart %>.kindSpec" -}}
entrypoint: bash /etc/chartgen/driver.sh
submissionMode: K8sJobMode
# Frees the machines; Kueue asks for it too.
shutdownAfterJobFinishes: true
# A new attempt is a new cluster.
backoffLimit: {{ .Run.restarts }}
{{- with .Values.run.deadlineSeconds }}
activeDeadlineSeconds: {{ . | int64 }}
{{- end }}
# Its pod starts the program on the head and prints its log; the command is KubeRay's.
submitterPodTemplate:
  metadata:
    {{- include "<%= chart %>.rayMetadata" (list . "submitter") | nindent 4 }}
  spec:
    {{- include "<%= chart %>.rayPod" . | nindent 4 }}
    {{- with and (or .Values.extraContainers .Values.extraInitContainers) .Values.extraVolumes }}
    volumes:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.extraInitContainers }}
    initContainers:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    containers:
      - name: submitter
        image: {{ .Run.launcher.image | quote }}
        imagePullPolicy: {{ .Values.imagePullPolicy }}
        resources:
          {{- include "<%= chart %>.rayResources" .Values.ray.submitterResources | nindent 10 }}
        securityContext:
          allowPrivilegeEscalation: false
          capabilities:
            drop: [ALL]
      {{- with .Values.extraContainers }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
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
      replicas: {{ .Run.nodes }}
      minReplicas: {{ .Run.nodes }}
      maxReplicas: {{ .Run.nodes }}
      rayStartParams:
        num-gpus: {{ .Run.gpusPerNode | quote }}
      template:
        {{- include "<%= chart %>.pod" . | nindent 8 }}
<%= slot("workloadSpec.yaml", 0) %>
{{- end }}
