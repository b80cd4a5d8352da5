{{/* What starts before the program, and beside it: the fragments' containers, then the user's. */}}
{{- define "crusoe.initContainers" }}
{{- /* storage */}}
{{- if include "crusoe.ownFolders" . | trim }}
{{- $own := .Values.data.podSecurityContext }}
{{- $folders := include "crusoe.ownFolders" . | fromYamlArray }}
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
    - {{ include "crusoe.literal" . }}
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
    - name: {{ include "crusoe.storeVolume" (list $ $role) }}
      mountPath: /{{ $role }}
      {{- with include "crusoe.storeSubPath" (list $ $role) }}
      subPath: {{ quote . }}
      {{- end }}
    {{- end }}
    {{- end }}
{{- end }}
{{- with .Values.extraInitContainers }}
{{ toYaml . }}
{{- end }}
{{- end }}
