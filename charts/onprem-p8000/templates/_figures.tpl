{{/*
What templates ask for, made once for all files of the chart, as .Run: the launcher with its values over its own, the
machine type, and figures derived from values.
*/}}
{{- define "onprem-p8000.figures" -}}
{{- if not .Run }}
{{- $v := .Values }}
{{- $launcher := .Files.Get (printf "files/launchers/%s/launcher.yaml" $v.launcher) | fromYaml }}
{{- with $launcher.sameAs }}
{{- with (get $v.launchers . | default dict).image }}{{ $_ := set $launcher "image" . }}{{ end }}
{{- end }}
{{- range $key, $value := get $v.launchers $v.launcher }}
{{- if $value }}{{ $_ := set $launcher $key $value }}{{ end }}
{{- end }}
{{- $trains := eq $launcher.task "train" }}
{{- $machine := get (.Files.Get "files/machines.yaml" | fromYaml) $v.machineType }}
{{- $gpus := $v.gpusPerNode | default $machine.gpus | int64 }}
{{- $world := mul $gpus $v.nodes }}
{{- $global := $v.batch.global }}
{{- $home := $v.run.name | default (printf "%s/%s" .Release.Namespace .Release.Name) }}
{{- $run := dict "launcher" (toJson $launcher | fromJson) "machine" $machine "home" (printf "/outputs/%s" $home) }}
{{- $_ := set $run "gpu" (ne $launcher.task "data") }}
{{- /* Machines of a GPU program; the launcher's own number of pods for a program without GPUs, else one. */}}
{{- $_ := set $run "nodes" (eq $launcher.processes "gpu" | ternary $v.nodes ($launcher.nodes | default 1) | int64) }}
{{- /* With the spares, which take the place of lost machines. */}}
{{- $_ := set $run "pods" (add $run.nodes ($run.gpu | ternary $v.run.spares 0)) }}
{{- $_ := set $run "gpusPerNode" $gpus }}
{{- $_ := set $run "worldSize" $world }}
{{- /* Copies of the model that train side by side; cut to a whole number. */}}
{{- $_ := set $run "dataParallel" (div $world (mul $v.parallelism.tensor $v.parallelism.pipeline $v.parallelism.context) | max 1) }}
{{- /* "2/gpu" grows with the run. */}}
{{- $perGpu := toString $global | trimSuffix "/gpu" | int64 }}
{{- $_ := set $run "globalBatch" (kindIs "string" $global | ternary (mul $perGpu $world) (int64 $global)) }}
{{- $saves := and $trains $v.checkpoint.enabled }}
{{- $restarts := ternary 0 0 $saves }}
{{- $restarts = kindIs "invalid" $v.run.maxRestarts | ternary $restarts $v.run.maxRestarts | int64 }}
{{- $_ := set $run "restarts" $restarts }}
{{- /* Without a value, a run is watched if its steps can be read. */}}
{{- $read := or $v.run.stepLine $launcher.metrics $launcher.stepLine | empty | not }}
{{- $_ := set $run "watched" (and $trains (kindIs "invalid" $v.run.hangMinutes | ternary $read (gt (int64 $v.run.hangMinutes) 0))) }}
{{- /* Arguments of the examination of each machine; empty without it. */}}
{{- $examined := and $run.gpu (gt $run.pods 1) (ne $v.run.examine "off") }}
{{- $saves := $v.checkpoint.enabled | ternary ` "$CHECKPOINT_DIRECTORY"` "" }}
{{- $_ := set $run "examination" ($examined | ternary (printf "%s %v %d%s" ($v.run.examine | default "fail") $machine.peak $run.pods $saves) "") }}
{{- $_ := set $run "staged" (and $trains $v.data.stage) }}
{{- $_ := set $run "data" (include "onprem-p8000.storedData" . | fromYamlArray) }}
{{- $_ := set . "Run" $run }}
{{- end }}
{{- end }}
