{{/* Name behind the scheme of a store: claim, bucket or host. */}}
{{- define "eks-p5.storeName" -}}
{{- regexReplaceAll "^[a-z]+://" . "" | splitList "/" | first }}
{{- end }}

{{/* Path behind the name of a store, without slashes at its ends. */}}
{{- define "eks-p5.storePath" -}}
{{- regexReplaceAll "^[a-z]+://" . "" | splitList "/" | rest | join "/" | trimAll "/" }}
{{- end }}

{{/* Path of a role within its volume. Takes (list context role). */}}
{{- define "eks-p5.storeSubPath" -}}
{{- $from := (get (index . 0).Values.storage (index . 1)).from }}
{{- $release := (index . 0).Release }}
{{- if hasPrefix "disk://" $from }}
{{- printf "%s/%s/%s" $release.Namespace $release.Name (index . 1) }}
{{- else if hasPrefix "pvc://" $from }}
{{- include "eks-p5.storePath" $from }}
{{- end }}
{{- end }}

{{/* Volume of a role; roles on one claim share the volume of the first. Takes (list context role). */}}
{{- define "eks-p5.storeVolume" -}}
{{- $role := index . 1 }}
{{- $from := (get (index . 0).Values.storage $role).from }}
{{- $volume := "" }}
{{- range $other, $store := (index . 0).Values.storage }}
{{- $shared := and (hasPrefix "pvc://" $from) (hasPrefix "pvc://" $store.from) (eq (include "eks-p5.storeName" $store.from) (include "eks-p5.storeName" $from)) }}
{{- if and $shared (not $volume) }}{{ $volume = $other }}{{ end }}
{{- end }}
{{- $volume | default $role }}
{{- end }}
