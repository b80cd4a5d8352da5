{{/* Refuses values that cannot run, all reasons at once. The limits are those of Megatron's own start-up checks. */}}
{{- define "gke-a3mega.validate" -}}
{{- $check := dict "problems" list }}
{{- $launcher := include "gke-a3mega.launcher" . | fromYaml }}
{{- $machine := get (include "gke-a3mega.machines" . | fromYaml) .Values.machineType }}
{{- $gpus := include "gke-a3mega.gpusPerNode" . | int64 }}
{{- if gt $gpus (int64 $machine.gpus) }}
{{- $_ := set $check "problems" (append $check.problems (printf "gpusPerNode: %d is more than the %d GPUs of %s; raise nodes instead" $gpus (int64 $machine.gpus) .Values.machineType)) }}
{{- end }}
{{- if ne $launcher.task "data" }}
{{- $p := .Values.parallelism }}
{{- $world := include "gke-a3mega.worldSize" . | int64 }}
{{- $size := mul $p.tensor $p.pipeline $p.context }}
{{- $data := include "gke-a3mega.dataParallel" . | int64 }}
{{- if mod $world $size }}
{{- $_ := set $check "problems" (append $check.problems (printf "nodes: %d GPUs (%d machines x %d) cannot be divided by tensor %d x pipeline %d x context %d = %d; use a multiple of %d GPUs" $world (int64 .Values.nodes) $gpus (int64 $p.tensor) (int64 $p.pipeline) (int64 $p.context) $size $size)) }}
{{- else }}
{{- $global := include "gke-a3mega.globalBatch" . | int64 }}
{{- $unit := mul .Values.batch.micro $data }}
{{- if mod $global $unit }}
{{- $low := max $unit (mul (div $global $unit) $unit) }}
{{- $_ := set $check "problems" (append $check.problems (printf "batch.global: %d is not divisible by micro batch %d x data parallel %d = %d; nearest: %d or %d" $global (int64 .Values.batch.micro) $data $unit $low (add $low $unit))) }}
{{- else if and (gt (int64 $p.virtualPipeline) 1) (mod (div $global $unit) $p.pipeline) }}
{{- $_ := set $check "problems" (append $check.problems (printf "batch.global: %d gives %d micro-batches, which pipeline %d with %d virtual stages cannot share; use a multiple of %d" $global (div $global $unit) (int64 $p.pipeline) (int64 $p.virtualPipeline) (mul $unit $p.pipeline))) }}
{{- end }}
{{- if mod (mul $data $p.context) $p.expert }}
{{- $_ := set $check "problems" (append $check.problems (printf "parallelism.expert: %d does not divide data parallel x context = %d" (int64 $p.expert) (mul $data $p.context))) }}
{{- end }}
{{- end }}
{{- if mod .Values.model.layers (mul $p.pipeline $p.virtualPipeline) }}
{{- $_ := set $check "problems" (append $check.problems (printf "model.layers: %d layers cannot be divided by pipeline %d x virtual %d" (int64 .Values.model.layers) (int64 $p.pipeline) (int64 $p.virtualPipeline))) }}
{{- end }}
{{- if mod .Values.model.attentionHeads $p.tensor }}
{{- $_ := set $check "problems" (append $check.problems (printf "model.attentionHeads: %d heads cannot be divided by tensor %d" (int64 .Values.model.attentionHeads) (int64 $p.tensor))) }}
{{- end }}
{{- if mod .Values.model.hiddenSize .Values.model.attentionHeads }}
{{- $_ := set $check "problems" (append $check.problems (printf "model.hiddenSize: %d cannot be divided by %d attention heads" (int64 .Values.model.hiddenSize) (int64 .Values.model.attentionHeads))) }}
{{- end }}
{{- if and (gt (int64 $p.virtualPipeline) 1) (eq (int64 $p.pipeline) 1) }}
{{- $_ := set $check "problems" (append $check.problems "parallelism.virtualPipeline: needs pipeline above 1") }}
{{- end }}
{{- if and $p.sequence (eq (int64 $p.tensor) 1) }}
{{- $_ := set $check "problems" (append $check.problems "parallelism.sequence: needs tensor above 1") }}
{{- end }}
{{- if and (gt (int64 $p.expert) 1) (not .Values.model.experts) }}
{{- $_ := set $check "problems" (append $check.problems "parallelism.expert: needs model.experts") }}
{{- end }}
{{- if not (has .Values.precision $launcher.precisions) }}
{{- $_ := set $check "problems" (append $check.problems (printf "precision: %s cannot be trained with launcher %s; use %s" .Values.precision .Values.launcher (join ", " $launcher.precisions))) }}
{{- end }}
{{- end }}
{{- range $portable, $native := $launcher.owns }}
{{- $at := $launcher.config | default (dict) }}
{{- $found := true }}
{{- range splitList "." $native }}
{{- if and $found (kindIs "map" $at) (hasKey $at .) }}{{ $at = get $at . }}{{ else }}{{ $found = false }}{{ end }}
{{- end }}
{{- if $found }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.%s.config: %s is set by %s; set that instead" $.Values.launcher $native $portable)) }}
{{- end }}
{{- range $launcher.args }}
{{- if regexMatch (printf "^[+~-]*%s([.=]|$)" (regexReplaceAll "[.]" $native "[.]")) . }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.%s.args: %s is set by %s; set that instead" $.Values.launcher $native $portable)) }}
{{- end }}
{{- end }}
{{- end }}

{{- $pairs := dict "v1.0.1" (list "v1.0.8") "v1.0.3" (list "v1.0.9") "v1.0.7" (list "v1.0.13" "v1.0.13_1") "v1.0.8-1" (list "v1.0.14") }}
{{- $daemons := get $pairs .Values.network.pluginVersion | default (list) }}
{{- if not $daemons }}
{{- $_ := set $check "problems" (append $check.problems (printf "network.pluginVersion: %s is not a version whose daemon is known; use %s" .Values.network.pluginVersion (keys $pairs | sortAlpha | join ", "))) }}
{{- else if not (has .Values.network.daemonVersion $daemons) }}
{{- $_ := set $check "problems" (append $check.problems (printf "network.daemonVersion: %s does not go with plugin %s; use %s" .Values.network.daemonVersion .Values.network.pluginVersion (join " or " $daemons))) }}
{{- end }}
{{- if ne $gpus 8 }}
{{- $_ := set $check "problems" (append $check.problems (printf "gpusPerNode: GPUDirect-TCPXO drives all 8 GPUs of a machine, not %d" $gpus)) }}
{{- end }}
{{- range $role, $store := .Values.storage }}
{{- if and $store.mountOptions (regexMatch "^(pvc|disk|memory)://" $store.from) }}
{{- $_ := set $check "problems" (append $check.problems (printf "storage.%s.mountOptions: %s takes none; remove them" $role $store.from)) }}
{{- end }}
{{- end }}
{{- if .Values.storage.outputs.readOnly }}
{{- $_ := set $check "problems" (append $check.problems "storage.outputs.readOnly: runs write there; remove it") }}
{{- end }}
{{- if and .Values.topology.mode (not .Values.queue.name) }}
{{- $_ := set $check "problems" (append $check.problems "topology.mode: Kueue places the pods, so it needs queue.name") }}
{{- end }}
{{- if and .Values.queue.flexStart (not (and .Values.queue.name .Values.run.deadlineSeconds)) }}
{{- $_ := set $check "problems" (append $check.problems "queue.flexStart: needs queue.name and run.deadlineSeconds, the time that the machines are asked for") }}
{{- end }}
{{- if and .Values.topology.sliceSize (mod .Values.nodes (.Values.topology.sliceSize | default 1)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "topology.sliceSize: %d does not divide %d nodes" (int64 .Values.topology.sliceSize) (int64 .Values.nodes))) }}
{{- end }}
{{- with $check.problems }}{{ fail (printf "\n%s" (join "\n" .)) }}{{ end }}
{{- end }}
