{{/* Refuses values that cannot run, all reasons at once. The limits are those of Megatron's own start-up checks. */}}
{{- define "oke-h100.validate" -}}
{{- $check := dict "problems" list }}
{{- $launcher := include "oke-h100.launcher" . | fromYaml }}
{{- $machine := get (include "oke-h100.machines" . | fromYaml) .Values.machineType }}
{{- $gpus := include "oke-h100.gpusPerNode" . | int64 }}
{{- if and (ne $launcher.task "data") (gt $gpus (int64 $machine.gpus)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "gpusPerNode: %d is more than the %d GPUs of %s; raise nodes instead" $gpus (int64 $machine.gpus) .Values.machineType)) }}
{{- end }}
{{- if eq $launcher.task "train" }}
{{- $p := .Values.parallelism }}
{{- $world := include "oke-h100.worldSize" . | int64 }}
{{- $size := mul $p.tensor $p.pipeline $p.context }}
{{- $expertTensor := include "oke-h100.expertTensor" . | int64 }}
{{- $data := include "oke-h100.dataParallel" . | int64 }}
{{- if mod $world $size }}
{{- $_ := set $check "problems" (append $check.problems (printf "nodes: %d GPUs (%d machines x %d) cannot be divided by tensor %d x pipeline %d x context %d = %d; use a multiple of %d GPUs" $world (int64 .Values.nodes) $gpus (int64 $p.tensor) (int64 $p.pipeline) (int64 $p.context) $size $size)) }}
{{- else }}
{{- $global := include "oke-h100.globalBatch" . | int64 }}
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
{{- $layers := include "oke-h100.pipelineLayers" . | int64 }}
{{- if and (not (include "oke-h100.unevenStages" .)) (mod $layers (mul $p.pipeline $p.virtualPipeline)) }}
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
{{- $highest := include "oke-h100.setting" (list . "optimizer.learningRate") }}
{{- $lowest := include "oke-h100.setting" (list . "optimizer.minLearningRate") }}
{{- if and $highest $lowest (gt (float64 $lowest) (float64 $highest)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "optimizer.minLearningRate: %s is above learningRate %s; use less" $lowest $highest)) }}
{{- end }}
{{- $again := include "oke-h100.recompute" . | fromYaml }}
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
{{- if and (include "oke-h100.staged" .) (not (include "oke-h100.storedData" . | fromYamlArray)) }}
{{- $_ := set $check "problems" (append $check.problems "data.stage: there is no data set to copy; name one with data.name or data.prefixes, or set it to false") }}
{{- end }}
{{- if not $launcher.image }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.%s.image: has no public image; give the one that you built" .Values.launcher)) }}
{{- end }}
{{- if eq .Values.launcher "megatron-lm" }}
{{- $config := $launcher.config | default (dict) }}
{{- $owned := dict }}
{{- range $portable, $natives := $launcher.owns }}
{{- range $natives }}{{ $_ := set $owned . $portable }}{{ end }}
{{- end }}
{{- $given := dict "config" (keys $config | sortAlpha) "args" list }}
{{- range $launcher.args }}
{{- if hasPrefix "--" . }}{{ $_ := set $given "args" (append $given.args (trimPrefix "--" . | splitList "=" | first)) }}{{ end }}
{{- end }}
{{- /* argparse also takes the beginning of an option's name. */}}
{{- range $place, $names := $given }}
{{- range $name := $names }}
{{- $begun := "" }}
{{- range $option := keys $owned | sortAlpha }}
{{- if and (not $begun) (hasPrefix $name $option) }}{{ $begun = $option }}{{ end }}
{{- end }}
{{- if and $begun (not (hasKey $owned $name)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.megatron-lm.%s: %s is set by %s; set that instead" $place $begun (get $owned $begun))) }}
{{- end }}
{{- end }}
{{- end }}
{{- $release := regexFind "^nvcr[.]io/nvidia/nemo:[0-9]{2}[.][0-9]{2}" $launcher.image | regexFind "[0-9]{2}[.][0-9]{2}$" }}
{{- $since := dict "mxfp8" "25.04" "nvfp4" "25.11" }}
{{- $first := get $since .Values.precision }}
{{- if and $release (gt $first $release) (not (get .Values.launchers "megatron-lm").program) }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.megatron-lm.image: %s has no precision %s; use nvcr.io/nvidia/nemo:%s or newer" $launcher.image .Values.precision $first)) }}
{{- end }}
{{- $warmup := .Values.optimizer.warmupSteps }}
{{- $decay := index $config "lr-decay-iters" }}
{{- if and (not (kindIs "invalid" $warmup)) (not .Values.steps) }}
{{- $_ := set $check "problems" (append $check.problems "optimizer.warmupSteps: counts steps, but the run counts samples; use null, and launchers.megatron-lm.config.lr-warmup-samples") }}
{{- else if and (not (kindIs "invalid" $warmup)) (or (kindIs "float64" $decay) (kindIs "int64" $decay)) (ge (int64 $warmup) (int64 $decay)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "optimizer.warmupSteps: %d is not below lr-decay-iters %d; use fewer" (int64 $warmup) (int64 $decay))) }}
{{- end }}
{{- $samples := list }}
{{- $iterations := list }}
{{- range $name := $given.config }}
{{- if ne (toJson (get $config $name)) "null" }}
{{- if regexMatch "^(train|lr-(decay|warmup))-samples$" $name }}{{ $samples = append $samples $name }}{{ end }}
{{- if regexMatch "^lr-(decay|warmup)-iters$" $name }}{{ $iterations = append $iterations $name }}{{ end }}
{{- end }}
{{- end }}
{{- if and .Values.steps $samples }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.megatron-lm.config: %s counts samples and steps is %d; set steps to 0, or remove it" (join ", " $samples) (int64 .Values.steps))) }}
{{- else if and (not .Values.steps) (not (has "train-samples" $samples)) }}
{{- $_ := set $check "problems" (append $check.problems "steps: 0 leaves the length to launchers.megatron-lm.config, which has no train-samples; set one of them") }}
{{- else if and (not .Values.steps) $iterations }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.megatron-lm.config: %s counts steps, but the run counts samples; use -samples" (join ", " $iterations))) }}
{{- end }}
{{- if and .Values.evaluation.batches (regexMatch "^[^,]+,0*[.]?0*," .Values.data.split) }}
{{- $_ := set $check "problems" (append $check.problems (printf "data.split: %s keeps nothing for evaluation; give it a share, or set evaluation.batches to 0" .Values.data.split)) }}
{{- end }}
{{- if and (ne .Values.tokenizer.kind "none") (not .Values.tokenizer.path) }}
{{- $_ := set $check "problems" (append $check.problems (printf "tokenizer.path: is empty; kind %s needs a directory" .Values.tokenizer.kind)) }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "nemo-1" }}
{{- if and .Values.optimizer.decay (ne (toString .Values.optimizer.decay) "cosine") }}
{{- $_ := set $check "problems" (append $check.problems (printf "optimizer.decay: launcher nemo-1 has no %s; use cosine" .Values.optimizer.decay)) }}
{{- end }}
{{- $release := regexFind "^nvcr[.]io/nvidia/nemo:[0-9]{2}[.][0-9]{2}" $launcher.image }}
{{- if and (gt (regexFind "[0-9]{2}[.][0-9]{2}$" $release) "25.07") (not (get .Values.launchers "nemo-1").program) }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.nemo-1.image: %s has no NeMo 1 program; use nvcr.io/nvidia/nemo:25.07 or older, or another launcher" $launcher.image)) }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "mlperf-llama2-lora" }}
{{- $own := get .Values.launchers "mlperf-llama2-lora" }}
{{- if or (ne (int64 .Values.model.hiddenSize) 8192) (ne (int64 .Values.model.attentionHeads) 64) }}
{{- $_ := set $check "problems" (append $check.problems "model.hiddenSize: the benchmark trains Llama 2 70B only; take its preset llama2-70b-lora.yaml") }}
{{- end }}
{{- range $key, $wrong := dict
  "parallelism.virtualPipeline" (gt (int64 .Values.parallelism.virtualPipeline) 1)
  "parallelism.expert" (gt (int64 .Values.parallelism.expert) 1)
  "recompute" (ne (include "oke-h100.recompute" . | fromYaml).granularity "none")
  "checkpoint.enabled" .Values.checkpoint.enabled
  "profile.enabled" .Values.profile.enabled
  "data.stage" .Values.data.stage
}}
{{- if $wrong }}
{{- $_ := set $check "problems" (append $check.problems (printf "%s: the MLPerf benchmark does not support it; turn it off" $key)) }}
{{- end }}
{{- end }}
{{- if not .Values.checkpoint.from }}
{{- $_ := set $check "problems" (append $check.problems "checkpoint.from: the benchmark starts from base weights; give their directory") }}
{{- end }}
{{- /* conf/megatron_gpt_peft_tuning_config.yaml: skip_evals, then val_check_interval. */}}
{{- $global := include "oke-h100.globalBatch" . | int64 }}
{{- $interval := ($own.config | default (dict)).VAL_CHECK_INTERVAL | default 384 | int64 }}
{{- $first := div (mul (add (div $global 8) 3) $interval) $global }}
{{- if lt (int64 .Values.steps) $first }}
{{- $_ := set $check "problems" (append $check.problems (printf "steps: %d end before the first evaluation, which comes after %d steps of %d samples" (int64 .Values.steps) $first $global)) }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "mlperf-preprocess" }}
{{- if .Values.storage.data.readOnly }}
{{- $_ := set $check "problems" (append $check.problems "storage.data.readOnly: mlperf-preprocess writes there; remove it for this release") }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "download" }}
{{- if not (or .Values.data.source .Values.tokenizer.source .Values.checkpoint.source) }}
{{- $_ := set $check "problems" (append $check.problems "data.source: download has nothing to fetch; give it, tokenizer.source or checkpoint.source") }}
{{- end }}
{{- range $key, $source := dict "data.source" .Values.data.source "checkpoint.source" .Values.checkpoint.source }}
{{- if regexMatch "^https?://.*/$" $source }}
{{- $_ := set $check "problems" (append $check.problems (printf "%s: https:// cannot list a folder; name a file, or use hf:// or gs://" $key)) }}
{{- end }}
{{- end }}
{{- if and .Values.tokenizer.source (or (eq .Values.tokenizer.kind "none") (not .Values.tokenizer.path)) }}
{{- $_ := set $check "problems" (append $check.problems "tokenizer.source: needs tokenizer.kind, which says what files there are, and tokenizer.path") }}
{{- end }}
{{- if and .Values.checkpoint.source (not .Values.checkpoint.from) }}
{{- $_ := set $check "problems" (append $check.problems "checkpoint.source: needs checkpoint.from, the directory to put the weights into") }}
{{- end }}
{{- if .Values.storage.data.readOnly }}
{{- $_ := set $check "problems" (append $check.problems "storage.data.readOnly: download writes there; remove it for this release") }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "megatron-preprocess" }}
{{- if or (not .Values.data.name) (not .Values.data.source) (hasSuffix "/" .Values.data.source) }}
{{- $_ := set $check "problems" (append $check.problems "data.source: megatron-preprocess needs the address of one file, as download takes it, and data.name") }}
{{- end }}
{{- if .Values.data.shards }}
{{- $_ := set $check "problems" (append $check.problems "data.shards: megatron-preprocess makes one data set of one file; set 0, or use pile-dataprep") }}
{{- end }}
{{- if or (eq .Values.tokenizer.kind "none") (not .Values.tokenizer.path) }}
{{- $_ := set $check "problems" (append $check.problems "tokenizer.kind: megatron-preprocess needs a tokenizer and its tokenizer.path") }}
{{- end }}
{{- if .Values.storage.data.readOnly }}
{{- $_ := set $check "problems" (append $check.problems "storage.data.readOnly: megatron-preprocess writes there; remove it for this release") }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "pile-dataprep" }}
{{- if or (not .Values.data.name) (not .Values.data.shards) }}
{{- $_ := set $check "problems" (append $check.problems "data.shards: pile-dataprep needs the number of the Pile's files to prepare, 1 to 30, and data.name") }}
{{- else if and (not .Values.data.source) (gt (int64 .Values.data.shards) 30) }}
{{- $_ := set $check "problems" (append $check.problems (printf "data.shards: the Pile has 30 files, not %d" (int64 .Values.data.shards))) }}
{{- end }}
{{- if and .Values.data.source (not (regexMatch "^https?://.*/$" .Values.data.source)) }}
{{- $_ := set $check "problems" (append $check.problems "data.source: must be the https:// address of a folder with 00.jsonl.zst and so on, ending in /") }}
{{- end }}
{{- if or (eq .Values.tokenizer.kind "none") (not .Values.tokenizer.path) }}
{{- $_ := set $check "problems" (append $check.problems "tokenizer.kind: pile-dataprep needs a tokenizer and its tokenizer.path") }}
{{- end }}
{{- if .Values.storage.data.readOnly }}
{{- $_ := set $check "problems" (append $check.problems "storage.data.readOnly: pile-dataprep writes there; remove it for this release") }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "nccl-test" }}
{{- $units := dict "" 1 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 }}
{{- $least := mul (regexFind "^[0-9]+" $launcher.minBytes | int64) (get $units (regexFind "[A-Za-z]*$" $launcher.minBytes)) }}
{{- $most := mul (regexFind "^[0-9]+" $launcher.maxBytes | int64) (get $units (regexFind "[A-Za-z]*$" $launcher.maxBytes)) }}
{{- if lt $most $least }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.nccl-test.maxBytes: %s is less than minBytes %s" $launcher.maxBytes $launcher.minBytes)) }}
{{- end }}
{{- $world := include "oke-h100.worldSize" . | int64 }}
{{- if lt $most (mul 4 $world) }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.nccl-test.maxBytes: %s has no number for each of %d GPUs; use %d or more" $launcher.maxBytes $world (mul 4 $world))) }}
{{- end }}
{{- if eq $world 1 }}
{{- $_ := set $check "problems" (append $check.problems "nodes: one GPU has no other to talk to; use more GPUs or more machines") }}
{{- end }}
{{- if and (eq $launcher.mode "pairs") (lt (int64 .Values.nodes) 3) }}
{{- $_ := set $check "problems" (append $check.problems (printf "nodes: %d machines make no two pairs to compare; use 3 or more, or launchers.nccl-test.mode sweep" (int64 .Values.nodes))) }}
{{- end }}
{{- range $operation := keys ($launcher.minBusbw | default dict) | sortAlpha }}
{{- if or (eq $launcher.mode "pairs") (not (has $operation $launcher.operations)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.nccl-test.minBusbw: %s is not measured in a sweep of this run; remove it, or change mode or operations" $operation)) }}
{{- end }}
{{- end }}
{{- with $launcher.binary }}
{{- $measures := regexReplaceAll "_perf(_mpi)?$" (base .) "" }}
{{- if eq $launcher.mode "pairs" }}
{{- $_ := set $check "problems" (append $check.problems "launchers.nccl-test.binary: measures all GPUs together; leave it empty for mode pairs") }}
{{- end }}
{{- if ne (join "," $launcher.operations) $measures }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.nccl-test.operations: %s measures nothing else than %s; use [%s]" $launcher.binary $measures $measures)) }}
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.run.ttlSecondsAfterFinished }}
{{- $_ := set $check "problems" (append $check.problems "run.ttlSecondsAfterFinished: a finished Job that is gone would be started again by the next upgrade; leave it null (its pods hold no GPUs)") }}
{{- end }}
{{- if and (ne $launcher.task "data") (ne $launcher.processes "gpu") }}
{{- $_ := set $check "problems" (append $check.problems (printf "launcher: %s does not start one process for each GPU, which is what mpirun does; use a chart of another workload kind" .Values.launcher)) }}
{{- end }}
{{- if has (int .Values.mpi.sshPort) (list 22 6002) }}
{{- $_ := set $check "problems" (append $check.problems (printf "mpi.sshPort: %d is taken by the %s; use another one" (int .Values.mpi.sshPort) (eq (int .Values.mpi.sshPort) 22 | ternary "machine's own ssh server" "rendezvous of the ranks"))) }}
{{- end }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" .Release.Name) }}
{{- $_ := set $check "problems" (append $check.problems (printf "release %s: Volcano makes a Service of this name, which must begin with a letter and hold no dots" .Release.Name)) }}
{{- end }}
{{- if include "oke-h100.gpu" . }}
{{- if and (eq .Values.network.mode "sriov") (not (int (include "oke-h100.roceFunctions" .))) }}
{{- $_ := set $check "problems" (append $check.problems (printf "network.mode: %s has no virtual functions; use host" .Values.machineType)) }}
{{- end }}
{{- end }}
{{- range $role, $store := .Values.storage }}
{{- if and $store.mountOptions (regexMatch "^(pvc|nfs|disk|memory)://" $store.from) }}
{{- $_ := set $check "problems" (append $check.problems (printf "storage.%s.mountOptions: %s takes none; remove them" $role $store.from)) }}
{{- end }}
{{- end }}
{{- if .Values.storage.outputs.readOnly }}
{{- $_ := set $check "problems" (append $check.problems "storage.outputs.readOnly: runs write there; remove it") }}
{{- end }}
{{- if and (eq $launcher.task "train") .Values.checkpoint.enabled (hasPrefix "memory://" .Values.storage.outputs.from) }}
{{- $_ := set $check "problems" (append $check.problems "storage.outputs.from: checkpoints in memory:// are lost with the pod; use storage that all machines share, or checkpoint.enabled false") }}
{{- end }}
{{- with $check.problems }}{{ fail (printf "\n%s" (join "\n" .)) }}{{ end }}
{{- end }}
