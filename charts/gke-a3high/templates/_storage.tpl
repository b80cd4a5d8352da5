{{/* Name behind the scheme of a store: claim, bucket or host. */}}
{{- define "gke-a3high.storeName" -}}
{{- regexReplaceAll "^[a-z][a-z0-9+.-]*://" . "" | splitList "/" | first }}
{{- end }}

{{/* Path behind the name of a store, without slashes at its ends. */}}
{{- define "gke-a3high.storePath" -}}
{{- regexReplaceAll "^[a-z][a-z0-9+.-]*://" . "" | splitList "/" | rest | join "/" | trimAll "/" }}
{{- end }}

{{/* Path of a role within its volume. Takes (list context role). */}}
{{- define "gke-a3high.storeSubPath" -}}
{{- $from := (get (index . 0).Values.storage (index . 1)).from }}
{{- $release := (index . 0).Release }}
{{- if hasPrefix "disk://" $from }}
{{- printf "%s/%s/%s" $release.Namespace $release.Name (index . 1) }}
{{- else if regexMatch "^(pvc)://" $from }}
{{- include "gke-a3high.storePath" $from }}
{{- end }}
{{- end }}

{{/* Volume of a role; roles on one claim or volume with the same mount options share that of the first. Takes (list context role). */}}
{{- define "gke-a3high.storeVolume" -}}
{{- $role := index . 1 }}
{{- $own := get (index . 0).Values.storage $role }}
{{- $name := regexFind "^(pvc)://[^/]*" $own.from }}
{{- $volume := "" }}
{{- range $other, $store := (index . 0).Values.storage }}
{{- $shared := and $name (eq $name (regexFind "^(pvc)://[^/]*" $store.from)) (eq ($own.mountOptions | default "") ($store.mountOptions | default "")) }}
{{- if and $shared (not $volume) }}{{ $volume = $other }}{{ end }}
{{- end }}
{{- $volume | default $role }}
{{- end }}

{{/*
Folders that a program without GPUs writes to, and that may belong to root, as YAML: on claims, NFS servers and similar,
whose files keep their owners. Buckets and what a pod has to itself belong to whom the pod runs as.
*/}}
{{- define "gke-a3high.ownFolders" -}}
{{- $own := .Values.data.podSecurityContext }}
{{- if and $own.runAsUser (kindIs "invalid" $own.fsGroup) (not .Run.gpu) }}
{{- $folders := list }}
{{- if or (ne .Values.launcher "download") .Values.data.source }}{{ $folders = append $folders .Values.data.directory }}{{ end }}
{{- if .Values.tokenizer.source }}{{ $folders = append $folders .Values.tokenizer.path }}{{ end }}
{{- if .Values.checkpoint.source }}{{ $folders = append $folders .Values.checkpoint.from }}{{ end }}
{{- $download := .Values.launchers.download }}
{{- if and (eq .Values.launcher "download") $download.models }}{{ $folders = append $folders $download.cache }}{{ end }}
{{- range uniq $folders }}
{{- $store := get $.Values.storage (splitList "/" . | rest | first) }}
{{- if and $store (regexMatch "^(pvc|nfs)://" ($store.from | default "")) (not $store.readOnly) }}
- {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
