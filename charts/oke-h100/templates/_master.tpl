{{/*
The pod that runs mpirun. It has no GPU, but runs beside those with GPUs: on the same kind of machine, so that GPU
machines alone are enough, and in the same network, so that the daemons of mpirun reach it.
*/}}
{{- define "oke-h100.master" -}}
{{- $launcher := .Run.launcher -}}
metadata:
  labels:
    {{- include "oke-h100.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/component: mpimaster
    run: {{ .Run.name }}
    {{- with include "oke-h100.merge" (list (toYaml .Values.podLabels)) }}
    {{- . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: mpimaster
    # Makes a changed script a changed run.
    checksum/master.sh: {{ include "oke-h100.masterScript" . | sha256sum }}
    {{- with include "oke-h100.merge" (list (toYaml .Values.podAnnotations)) }}
    {{- . | nindent 4 }}
    {{- end }}
spec:
  restartPolicy: Never
  {{- with .Values.run.deadlineSeconds }}
  # When the master ends, so does the run.
  activeDeadlineSeconds: {{ . | int64 }}
  {{- end }}
  terminationGracePeriodSeconds: {{ .Values.run.gracePeriodSeconds | int64 }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . | quote }}
    {{- end }}
  {{- end }}
  securityContext:
    seccompProfile:
      type: RuntimeDefault
  {{- if .Run.gpu }}
  {{- /* roce-oke */}}
  {{- if eq .Values.network.mode "host" }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
  {{- end }}
  {{- with include "oke-h100.merge" (list (toYaml .Values.nodeSelector) (include "oke-h100.slot.nodeSelector" .)) }}
  nodeSelector:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with concat (include "oke-h100.tolerations" . | fromYamlArray) .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  affinity:
    {{- .Run.affinity | nindent 4 }}
  volumes:
    - name: master
      configMap:
        name: {{ .Run.name }}-master
    {{- with and (or .Values.extraContainers .Values.extraInitContainers) .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.extraInitContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    # chartgen: ignore[limits-are-set] it only starts the others; mpi.resources sets its requests
    - name: mpimaster
      image: {{ $launcher.image | quote }}
      imagePullPolicy: {{ .Values.imagePullPolicy }}
      command: [bash, /etc/chartgen/master.sh]
      env:
        - name: NNODES
          value: {{ .Run.nodes | quote }}
        - name: GPUS_PER_NODE
          value: {{ .Run.gpusPerNode | quote }}
        - name: MPI_SSH_PORT
          value: {{ .Values.mpi.sshPort | int64 | quote }}
        - name: MPI_WAIT_SECONDS
          value: {{ .Values.mpi.waitSeconds | int64 | quote }}
        - name: MPI_SORT_HOSTS
          value: {{ .Values.mpi.sortHosts | quote }}
        - name: MPI_BIND_TO
          value: {{ include "oke-h100.bindTo" . }}
      {{- with .Values.mpi.resources }}
      resources:
        requests:
          {{- range $name, $quantity := . }}
          {{ $name }}: {{ $quantity | quote }}
          {{- end }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: master
          mountPath: /etc/chartgen
          readOnly: true
    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* What mpirun binds each process to: the user's choice, or what the machine type was measured with. */}}
{{- define "oke-h100.bindTo" -}}
{{- $machine := .Run.machine }}
{{- .Values.mpi.bindTo | default ($machine.fabric | default dict).bindTo | default "numa" }}
{{- end }}
