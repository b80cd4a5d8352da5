{{/* What the data set's files are called, before what the tools append: one name, or one for each shard. */}}
{{- define "coreweave.dataNames" -}}
{{- $data := .Values.data }}
{{- $names := list }}
{{- if and $data.name $data.shards }}
{{- range $shard := until (int $data.shards) }}
{{- $names = append $names (printf "%s/%s_%02d" $data.directory $data.name $shard) }}
{{- end }}
{{- else if $data.name }}
{{- $names = append $names (printf "%s/%s" $data.directory $data.name) }}
{{- end }}
{{- toYaml $names }}
{{- end }}

{{/* Data sets where the storage has them, as a list of {path, weight}; empty = mock data. */}}
{{- define "coreweave.storedData" -}}
{{- $stored := list }}
{{- range .Values.data.prefixes }}
{{- $entry := kindIs "map" . | ternary . (dict "path" .) }}
{{- $path := hasPrefix "/" $entry.path | ternary $entry.path (printf "%s/%s" $.Values.data.directory $entry.path) }}
{{- $stored = append $stored (dict "path" $path "weight" ($entry.weight | default 1.0)) }}
{{- end }}
{{- range include "coreweave.dataNames" . | fromYamlArray }}
{{- $stored = append $stored (dict "path" (printf "%s_text_document" .) "weight" 1.0) }}
{{- end }}
{{- toYaml $stored }}
{{- end }}

{{/* Data sets where training reads them: in the storage, or below /scratch when each machine copies them first. */}}
{{- define "coreweave.dataPrefixes" -}}
{{- $folder := .Values.data.stage | ternary "/scratch" "" }}
{{- $read := list }}
{{- range .Run.data }}{{ $read = append $read (dict "path" (printf "%s%s" $folder .path) "weight" .weight) }}{{ end }}
{{- toYaml $read }}
{{- end }}

{{/* Where ranks keep indexes of the data sets: shared by all machines, also when the data is not or may not be written. */}}
{{- define "coreweave.dataCache" -}}
{{- printf "%s/data-cache" .Run.home }}
{{- end }}
