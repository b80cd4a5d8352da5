{{/*
Security context of the run's pods. Programs without GPUs run as a user. Those that train run as the user of their image:
NVIDIA's start as root.
*/}}
{{- define "<%= chart %>.podSecurityContext" -}}
<% if without_gpus %>
{{- if not .Run.gpu }}
{{- with .Values.data.podSecurityContext }}
{{- /* Deleted with null, the cluster or the image decides the user; root must be set explicitly. */}}
{{- if ne (toString .runAsUser) "0" }}
runAsNonRoot: true
{{- end }}
{{- if not (kindIs "invalid" .runAsUser) }}
runAsUser: {{ int64 .runAsUser }}
{{- end }}
{{- if not (kindIs "invalid" .runAsGroup) }}
runAsGroup: {{ int64 .runAsGroup }}
{{- end }}
{{- with .supplementalGroups }}
supplementalGroups:
  {{- range . }}
  - {{ int64 . }}
  {{- end }}
{{- end }}
{{- if not (kindIs "invalid" .fsGroup) }}
fsGroup: {{ int64 .fsGroup }}
# A volume whose top belongs to the group already is not walked through file by file.
fsGroupChangePolicy: OnRootMismatch
{{- end }}
{{- end }}
{{- end }}
<% endif %>
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/*
Security context of the program's container, added to that of the fragments. Without GPUs it keeps nothing; with GPUs, of the
capabilities that every container has by default, those that root needs for files of other users, and for services that
drop to a user.
*/}}
{{- define "<%= chart %>.securityContext" -}}
{{- $security := <% if filled("securityContext") %>include "<%= chart %>.slot.securityContext" . | fromYaml<% else %>dict<% endif %> }}
{{- if not $security.privileged }}
{{- $add := ($security.capabilities | default dict).add | default list }}
{{- if .Run.gpu }}
{{- $add = concat $add (list "CHOWN" "DAC_OVERRIDE" "FOWNER" "SETGID" "SETUID") }}
<% if kind.extends == "mpi" %>
{{- /* The ssh server puts what serves the network into an empty root. */}}
{{- $add = append $add "SYS_CHROOT" }}
<% endif %>
{{- else }}
{{- $_ := set $security "readOnlyRootFilesystem" true }}
{{- end }}
{{- $capabilities := dict "drop" (list "ALL") }}
{{- with $add }}{{ $_ := set $capabilities "add" (uniq . | sortAlpha) }}{{ end }}
{{- $_ := set $security "capabilities" $capabilities }}
{{- $_ := set $security "allowPrivilegeEscalation" false }}
{{- end }}
{{- toYaml $security }}
{{- end }}

{{/* Whether the program needs a folder for temporary files, since its root file system is read-only: "true" or nothing. */}}
{{- define "<%= chart %>.ownTmp" -}}
{{- $taken := list }}
{{- range .Values.extraVolumeMounts }}{{ $taken = append $taken .mountPath }}{{ end }}
{{- if not (or .Run.gpu (has "/tmp" $taken)) }}true{{ end }}
{{- end }}
