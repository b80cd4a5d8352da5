{{/* Name behind the scheme of a store: claim, bucket or host. */}}
{{- define "gke-a4-setup.storeName" -}}
{{- regexReplaceAll "^[a-z][a-z0-9+.-]*://" . "" | splitList "/" | first }}
{{- end }}

{{/* Path behind the name of a store, without slashes at its ends. */}}
{{- define "gke-a4-setup.storePath" -}}
{{- regexReplaceAll "^[a-z][a-z0-9+.-]*://" . "" | splitList "/" | rest | join "/" | trimAll "/" }}
{{- end }}

{{/* Path of a role within its volume. Takes (list context role). */}}
{{- define "gke-a4-setup.storeSubPath" -}}
{{- $from := (get (index . 0).Values.storage (index . 1)).from }}
{{- $release := (index . 0).Release }}
{{- if hasPrefix "disk://" $from }}
{{- printf "%s/%s/%s" $release.Namespace $release.Name (index . 1) }}
{{- else if regexMatch "^(pvc)://" $from }}
{{- include "gke-a4-setup.storePath" $from }}
{{- end }}
{{- end }}

{{/* Volume of a role; roles on one claim or volume with the same mount options share that of the first. Takes (list context role). */}}
{{- define "gke-a4-setup.storeVolume" -}}
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
