{{/* Machine types: what one machine of each offers. */}}
{{- define "<%= chart %>.machines" -}}
<% for machine in target.machines.values() %>
<%= machine.name %>:
  gpus: <%= machine.gpus %>
  gpu: <%= machine.gpu %>
  capacity: <%= machine.capacity | quoted %>
<% endfor %>
{{- end }}

{{/* Launchers: what each does, starts and can train in. */}}
{{- define "<%= chart %>.launchers" -}}
<% for launcher in target.launchers %>
<%= launcher.name %>:
  task: <%= launcher.task %>
  program: <%= launcher.program | quoted %>
  image: <%= launcher.image | quoted %>
  precisions: <%= launcher.precisions | quoted %>
  owns: <%= launcher.owns | quoted %>
<% endfor %>
{{- end }}

{{/* The chosen launcher, as YAML; its values win over its defaults. */}}
{{- define "<%= chart %>.launcher" -}}
{{- $launcher := get (include "<%= chart %>.launchers" . | fromYaml) .Values.launcher }}
{{- range $key, $value := get .Values.launchers .Values.launcher }}
{{- if $value }}{{ $_ := set $launcher $key $value }}{{ end }}
{{- end }}
{{- toYaml $launcher }}
{{- end }}

{{/* Whether the run uses GPUs: "true" or nothing. */}}
{{- define "<%= chart %>.gpu" -}}
{{- if ne (include "<%= chart %>.launcher" . | fromYaml).task "data" }}true{{ end }}
{{- end }}

{{/* GPUs of each machine that the run uses: those asked for, or all. */}}
{{- define "<%= chart %>.gpusPerNode" -}}
{{- $machine := get (include "<%= chart %>.machines" . | fromYaml) .Values.machineType }}
{{- .Values.gpusPerNode | default $machine.gpus | int64 }}
{{- end }}

{{/* Processes of the run, one for each GPU. */}}
{{- define "<%= chart %>.worldSize" -}}
{{- mul (include "<%= chart %>.gpusPerNode" . | int64) .Values.nodes }}
{{- end }}

{{/* Copies of the model that train side by side; cut to a whole number. */}}
{{- define "<%= chart %>.dataParallel" -}}
{{- $p := .Values.parallelism }}
{{- div (include "<%= chart %>.worldSize" . | int64) (mul $p.tensor $p.pipeline $p.context) | max 1 }}
{{- end }}

{{/* Samples of one step; "2/gpu" grows with the run. */}}
{{- define "<%= chart %>.globalBatch" -}}
{{- $global := .Values.batch.global }}
{{- if kindIs "string" $global }}
{{- mul (trimSuffix "/gpu" $global | int64) (include "<%= chart %>.worldSize" . | int64) }}
{{- else }}
{{- int64 $global }}
{{- end }}
{{- end }}

{{/* Data sets that training reads, as a list of {path, weight}; empty = mock data. */}}
{{- define "<%= chart %>.dataPrefixes" -}}
{{- $data := .Values.data }}
{{- $prefixes := list }}
{{- range $data.prefixes }}
{{- $entry := kindIs "map" . | ternary . (dict "path" .) }}
{{- $path := hasPrefix "/" $entry.path | ternary $entry.path (printf "%s/%s" $data.directory $entry.path) }}
{{- $prefixes = append $prefixes (dict "path" $path "weight" ($entry.weight | default 1.0)) }}
{{- end }}
{{- if and $data.name (not $data.shards) }}
{{- $prefixes = append $prefixes (dict "path" (printf "%s/%s_text_document" $data.directory $data.name) "weight" 1.0) }}
{{- else if $data.name }}
{{- range $shard := until (int $data.shards) }}
{{- $prefixes = append $prefixes (dict "path" (printf "%s/%s_%02d_text_document" $data.directory $data.name $shard) "weight" 1.0) }}
{{- end }}
{{- end }}
{{- toYaml $prefixes }}
{{- end }}
