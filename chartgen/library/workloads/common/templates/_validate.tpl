{{/* Refuses values that cannot run, all reasons at once. The limits are those of Megatron's own start-up checks. */}}
{{- define "<%= chart %>.validate" -}}
{{- $check := dict "problems" list }}
{{- $launcher := include "<%= chart %>.launcher" . | fromYaml }}
{{- $machine := get (include "<%= chart %>.machines" . | fromYaml) .Values.machineType }}
{{- $gpus := include "<%= chart %>.gpusPerNode" . | int64 }}
{{- if and (ne $launcher.task "data") (gt $gpus (int64 $machine.gpus)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "gpusPerNode: %d is more than the %d GPUs of %s; raise nodes instead" $gpus (int64 $machine.gpus) .Values.machineType)) }}
{{- end }}
{{- if eq $launcher.task "train" }}
{{- $p := .Values.parallelism }}
{{- $world := include "<%= chart %>.worldSize" . | int64 }}
{{- $size := mul $p.tensor $p.pipeline $p.context }}
{{- $expertTensor := include "<%= chart %>.expertTensor" . | int64 }}
{{- $data := include "<%= chart %>.dataParallel" . | int64 }}
{{- if mod $world $size }}
{{- $_ := set $check "problems" (append $check.problems (printf "nodes: %d GPUs (%d machines x %d) cannot be divided by tensor %d x pipeline %d x context %d = %d; use a multiple of %d GPUs" $world (int64 .Values.nodes) $gpus (int64 $p.tensor) (int64 $p.pipeline) (int64 $p.context) $size $size)) }}
{{- else }}
{{- $global := include "<%= chart %>.globalBatch" . | int64 }}
{{- $unit := mul .Values.batch.micro $data }}
{{- if mod $global $unit }}
{{- $low := max $unit (mul (div $global $unit) $unit) }}
{{- $_ := set $check "problems" (append $check.problems (printf "batch.global: %d is not divisible by micro batch %d x data parallel %d = %d; nearest: %d or %d" $global (int64 .Values.batch.micro) $data $unit $low (add $low $unit))) }}
{{- else if and (gt (int64 $p.virtualPipeline) 1) (mod (div $global $unit) $p.pipeline) }}
{{- $_ := set $check "problems" (append $check.problems (printf "batch.global: %d gives %d micro-batches, which pipeline %d with %d virtual stages cannot share; use a multiple of %d" $global (div $global $unit) (int64 $p.pipeline) (int64 $p.virtualPipeline) (mul $unit $p.pipeline))) }}
{{- end }}
{{- $groups := mul $expertTensor $p.expert $p.pipeline }}
{{- if and (or (gt (int64 $p.expert) 1) (ne $expertTensor (int64 $p.tensor))) (mod $world $groups) }}
{{- $_ := set $check "problems" (append $check.problems (printf "parallelism.expert: %d x expert tensor %d x pipeline %d = %d does not divide %d GPUs" (int64 $p.expert) $expertTensor (int64 $p.pipeline) $groups $world)) }}
{{- end }}
{{- end }}
{{- if and (ne $expertTensor (int64 $p.tensor)) (not (hasKey $launcher.owns "parallelism.expertTensor")) }}
{{- $_ := set $check "problems" (append $check.problems (printf "parallelism.expertTensor: launcher %s has no option for it; use null" .Values.launcher)) }}
{{- end }}
{{- if and (ne $expertTensor (int64 $p.tensor)) (not .Values.model.experts) }}
{{- $_ := set $check "problems" (append $check.problems "parallelism.expertTensor: needs model.experts; use null") }}
{{- end }}
{{- $layers := include "<%= chart %>.pipelineLayers" . | int64 }}
{{- if and (not (include "<%= chart %>.unevenStages" .)) (mod $layers (mul $p.pipeline $p.virtualPipeline)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "model.layers: %d layers cannot be divided by pipeline %d x virtual %d" $layers (int64 $p.pipeline) (int64 $p.virtualPipeline))) }}
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
{{- /* The same arithmetic as in chartgen/checks: arithmetic.py, experts.py, stages.py. */}}
{{- $tensor := int64 $p.tensor }}
{{- $context := int64 $p.context }}
{{- $heads := int64 .Values.model.attentionHeads }}
{{- $queryGroups := .Values.model.queryGroups | default $heads | int64 }}
{{- if mod $heads $queryGroups }}
{{- $_ := set $check "problems" (append $check.problems (printf "model.queryGroups: %d key and value heads do not divide %d attention heads" $queryGroups $heads)) }}
{{- else if and (ne $queryGroups $heads) (mod $queryGroups $tensor) (mod $tensor $queryGroups) }}
{{- $_ := set $check "problems" (append $check.problems (printf "parallelism.tensor: %d key and value heads are neither a multiple nor a divisor of tensor %d" $queryGroups $tensor)) }}
{{- end }}
{{- $hidden := int64 .Values.model.hiddenSize }}
{{- $feedForward := .Values.model.ffnHiddenSize | default (mul 4 $hidden) | int64 }}
{{- $experts := int64 .Values.model.experts }}
{{- $sharing := $experts | empty | ternary "tensor" "expertTensor" }}
{{- $share := $experts | empty | ternary $tensor $expertTensor }}
{{- if mod $hidden $tensor }}
{{- $_ := set $check "problems" (append $check.problems (printf "parallelism.tensor: hiddenSize %d cannot be divided by tensor %d" $hidden $tensor)) }}
{{- end }}
{{- if mod $feedForward $share }}
{{- $_ := set $check "problems" (append $check.problems (printf "parallelism.%s: ffnHiddenSize %d cannot be divided by tensor %d" $sharing $feedForward $share)) }}
{{- end }}
{{- $length := int64 .Values.sequenceLength }}
{{- if and (gt $context 1) (mod $length (mul 2 $context)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "sequenceLength: %d cannot be divided by 2 x context %d" $length $context)) }}
{{- else if and $p.sequence (mod (div $length $context) $tensor) }}
{{- $_ := set $check "problems" (append $check.problems (printf "sequenceLength: %d tokens on context %d cannot be divided by tensor %d" $length $context $tensor)) }}
{{- end }}
{{- if and $experts (mod $experts $p.expert) }}
{{- $_ := set $check "problems" (append $check.problems (printf "parallelism.expert: %d does not divide %d experts" (int64 $p.expert) $experts)) }}
{{- end }}
{{- if and $experts (gt (int64 .Values.model.expertsPerToken) $experts) }}
{{- $_ := set $check "problems" (append $check.problems (printf "model.expertsPerToken: %d is more than the %d experts of a layer" (int64 .Values.model.expertsPerToken) $experts)) }}
{{- end }}
{{- if and $experts (gt $tensor 1) (not $p.sequence) }}
{{- $_ := set $check "problems" (append $check.problems "parallelism.sequence: a model with experts needs it when tensor is above 1") }}
{{- end }}
{{- if eq .Values.precision "fp8" }}
{{- $parts := mul $context ($p.sequence | ternary $tensor 1) }}
{{- $rows := mul $length .Values.batch.micro }}
{{- if and (not (mod $rows $parts)) (mod (div $rows $parts) 8) }}
{{- $_ := set $check "problems" (append $check.problems (printf "sequenceLength: %d tokens on a GPU are not a multiple of 8, which FP8 needs" (div $rows $parts))) }}
{{- end }}
{{- if mod $hidden 16 }}
{{- $_ := set $check "problems" (append $check.problems (printf "model.hiddenSize: %d on a GPU is not a multiple of 16, which FP8 needs" $hidden)) }}
{{- end }}
{{- if and (not (mod $feedForward $share)) (mod (div $feedForward $share) 16) }}
{{- $_ := set $check "problems" (append $check.problems (printf "model.ffnHiddenSize: %d on a GPU is not a multiple of 16, which FP8 needs" (div $feedForward $share))) }}
{{- end }}
{{- end }}
{{- $own := list }}
{{- $config := $launcher.config | default (dict) }}
{{- $nested := kindIs "map" $config.model | ternary $config.model (dict) }}
{{- range list "first" "last" }}
{{- range list (get $config (printf "decoder-%s-pipeline-num-layers" .)) (get $nested (printf "num_layers_in_%s_pipeline_stage" .)) }}
{{- if and . (or (kindIs "int64" .) (kindIs "float64" .)) }}{{ $own = append $own (int64 .) }}{{ end }}
{{- end }}
{{- end }}
{{- if $own }}
{{- $rest := $layers }}
{{- range $own }}{{ $rest = sub $rest . }}{{ end }}
{{- $others := sub $p.pipeline (len $own) }}
{{- if or (lt $others 0) (lt $rest $others) (and (eq $others 0) (ne $rest 0)) (and (gt $others 0) (mod $rest (max $others 1))) }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.%s.config: stages with layers of their own number leave %d of %d for %d other stages" $.Values.launcher $rest $layers $others)) }}
{{- else }}
{{- $odd := false }}
{{- range append $own (div $rest (max $others 1)) }}{{ if mod . $p.virtualPipeline }}{{ $odd = true }}{{ end }}{{ end }}
{{- if $odd }}
{{- $_ := set $check "problems" (append $check.problems (printf "parallelism.virtualPipeline: stages with layers of their own number cannot all be divided by %d" (int64 $p.virtualPipeline))) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $key := list "optimizer.learningRate" "optimizer.minLearningRate" "optimizer.warmupSteps" "optimizer.decay" "optimizer.weightDecay" "optimizer.clipGradient" "model.rotaryBase" "model.initStandardDeviation" "model.tiedEmbeddings" }}
{{- $path := splitList "." $key }}
{{- if and (not (hasKey $launcher.owns $key)) (not (kindIs "invalid" (index (get $.Values (first $path)) (last $path)))) }}
{{- $_ := set $check "problems" (append $check.problems (printf "%s: launcher %s has no option for it; use null" $key $.Values.launcher)) }}
{{- end }}
{{- end }}
{{- $highest := include "<%= chart %>.setting" (list . "optimizer.learningRate") }}
{{- $lowest := include "<%= chart %>.setting" (list . "optimizer.minLearningRate") }}
{{- if and $highest $lowest (gt (float64 $lowest) (float64 $highest)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "optimizer.minLearningRate: %s is above learningRate %s; use less" $lowest $highest)) }}
{{- end }}
{{- $again := include "<%= chart %>.recompute" . | fromYaml }}
{{- $parts := mul $p.pipeline $p.virtualPipeline | int64 }}
{{- if and (eq $again.granularity "full") (eq $again.method "uniform") (not (mod $layers $parts)) }}
{{- if mod (div $layers $parts) $again.layers }}
{{- $_ := set $check "problems" (append $check.problems (printf "recompute.layers: units of %d layers do not divide a chunk of %d; use 1, or method block" (int64 $again.layers) (div $layers $parts))) }}
{{- end }}
{{- end }}
{{- if and .Values.model.rotaryBase (eq .Values.model.family "gpt") }}
{{- $_ := set $check "problems" (append $check.problems "model.rotaryBase: family gpt learns its positions; use null") }}
{{- end }}
{{- if not (has .Values.precision $launcher.precisions) }}
{{- $_ := set $check "problems" (append $check.problems (printf "precision: %s cannot be trained with launcher %s; use %s" .Values.precision .Values.launcher (join ", " $launcher.precisions))) }}
{{- end }}
{{- end }}
{{- range $portable, $natives := $launcher.owns }}
{{- range $native := $natives }}
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
{{- end }}
{{- if and (include "<%= chart %>.staged" .) (not (include "<%= chart %>.storedData" . | fromYamlArray)) }}
{{- $_ := set $check "problems" (append $check.problems "data.stage: there is no data set to copy; name one with data.name or data.prefixes, or set it to false") }}
{{- end }}
{{- if not $launcher.image }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.%s.image: has no public image; give the one that you built" .Values.launcher)) }}
{{- end }}
<% for launcher in target.launchers if "validate.tpl" in launcher.parts %>
{{- if eq .Values.launcher "<%= launcher.name %>" }}
<%= part(launcher, "validate.tpl") %>
{{- end }}
<% endfor %>
<%= workload_validate() %>
<%= slot("validate.tpl", 0) %>
{{- with $check.problems }}{{ fail (printf "\n%s" (join "\n" .)) }}{{ end }}
{{- end }}
