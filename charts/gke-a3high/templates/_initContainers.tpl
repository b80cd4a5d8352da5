{{/* What starts before the program, and beside it: the fragments' containers, then the user's. */}}
{{- define "gke-a3high.initContainers" }}
{{- if .Run.gpu }}
{{- /* gpudirect */}}
{{- $gpudirect := include "gke-a3high.gpudirect" . | fromYaml }}
# Copies the NCCL plugin to where the program finds it.
- name: nccl-plugin-installer
  image: "{{ .Values.network.repository }}/nccl-plugin-gpudirecttcpx-dev:{{ .Values.network.pluginVersion }}"
  imagePullPolicy: {{ .Values.imagePullPolicy }}
  command: [/bin/sh, -ec, {{ toJson $gpudirect.install }}, installer]
  args: {{ toJson $gpudirect.installArguments }}
  securityContext:
    allowPrivilegeEscalation: false
    capabilities:
      drop: [ALL]
      add: [CHOWN, DAC_OVERRIDE, FOWNER]
  volumeMounts:
    - name: nccl-plugin
      mountPath: {{ $gpudirect.installed }}
# RxDM, the receive daemon. A native sidecar: it runs before and beside the program and ends with it, also when the
# program is killed.
- name: {{ $gpudirect.daemon }}
  image: "{{ .Values.network.repository }}/tcpgpudmarxd-dev:{{ .Values.network.daemonVersion }}"
  imagePullPolicy: {{ .Values.imagePullPolicy }}
  restartPolicy: Always
  command:
    - bash
    - -c
    - |
      {{- include "gke-a3high.gpudirectWatch" . | nindent 6 }}
    - {{ $gpudirect.daemon }}
  args: {{ toJson $gpudirect.daemonCommand }}
  env:
    - name: LD_LIBRARY_PATH
      value: /usr/local/nvidia/lib64
    {{- if $gpudirect.probe }}
    - name: HEALTH_CHECK_LOG_FILE
      value: {{ $gpudirect.probe }}
    {{- end }}
  {{- if $gpudirect.probe }}
  # The daemon writes the file when it is ready, after about 30 s; the program starts then.
  startupProbe:
    exec:
      command: [cat, {{ $gpudirect.probe }}]
    initialDelaySeconds: 1
    periodSeconds: 5
    failureThreshold: 24
  {{- end }}
  securityContext:
    {{- if .Values.network.hostNetwork }}
    privileged: true
    {{- else }}
    allowPrivilegeEscalation: false
    {{- end }}
    capabilities:
      add: {{ toJson $gpudirect.capabilities }}
      {{- if not .Values.network.hostNetwork }}
      drop: [NET_RAW]
      {{- end }}
  volumeMounts:
    - name: nvidia-libraries
      mountPath: /usr/local/nvidia
    - name: sys
      mountPath: /hostsysfs
    - name: proc-sys
      mountPath: /hostprocsysfs
    {{- range $gpudirect.daemonMounts }}
    - name: {{ .name }}
      mountPath: {{ .mountPath }}
    {{- end }}
{{- end }}
{{- /* storage */}}
{{- if include "gke-a3high.ownFolders" . | trim }}
{{- $own := .Values.data.podSecurityContext }}
{{- $folders := include "gke-a3high.ownFolders" . | fromYamlArray }}
{{- $mounts := list }}
{{- range $folders }}{{ $mounts = append $mounts (regexFind "^/[^/]*" .) }}{{ end }}
# New storage belongs to root, and neither NFS nor every driver of claims knows fsGroup, which would also change what
# others have there. So root makes the folders of the program, and gives it those that are root's: these alone, and not
# what is in them. Whose folder it is decides, since this root is not asked for permission.
- name: own-folders
  image: {{ .Run.launcher.image | quote }}
  imagePullPolicy: {{ .Values.imagePullPolicy }}
  command:
    - bash
    - -euc
    - |
      user=$1 groups=$2
      shift 2
      for folder in "$@"; do
        mkdir -p "$folder"
        read -r owner group mode < <(stat -c "%u %g %a" "$folder")
        if [[ $owner == "$user" ]] || ((0$mode & 2)) || { ((0$mode & 16)) && [[ " $groups " == *" $group "* ]]; }; then
          continue
        fi
        if [[ $owner != 0 ]] || ! chown "$user:${groups%% *}" "$folder"; then
          echo "chartgen: user $user cannot write to $folder, which belongs to user $owner and group $group; set" \
            "data.podSecurityContext to who can, or change its owner on the server" >&2
          exit 1
        fi
      done
    - own-folders
  args:
    - {{ int64 $own.runAsUser | quote }}
    {{- $groups := list }}
    {{- range prepend $own.supplementalGroups $own.runAsGroup }}{{ $groups = append $groups (int64 .) }}{{ end }}
    - {{ join " " $groups | quote }}
    {{- range $folders }}
    - {{ include "gke-a3high.literal" . }}
    {{- end }}
  resources:
    requests: {cpu: 10m, memory: 32Mi}
    limits: {memory: 64Mi}
  securityContext:
    runAsNonRoot: false
    runAsUser: 0
    runAsGroup: 0
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
      add: [CHOWN, DAC_OVERRIDE]
  # A bucket is there only when the containers behind this one are.
  volumeMounts:
    {{- range $role, $store := .Values.storage }}
    {{- if has (printf "/%s" $role) $mounts }}
    - name: {{ include "gke-a3high.storeVolume" (list $ $role) }}
      mountPath: /{{ $role }}
      {{- with include "gke-a3high.storeSubPath" (list $ $role) }}
      subPath: {{ quote . }}
      {{- end }}
    {{- end }}
    {{- end }}
{{- end }}
{{- with .Values.extraInitContainers }}
{{ toYaml . }}
{{- end }}
{{- end }}
