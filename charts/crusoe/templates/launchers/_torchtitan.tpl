{{/*
torchtitan: torchtitan pretraining of its own models, with FSDP and further parallelism of PyTorch.
What the templates of a run include by these names; empty = this launcher needs none.
*/}}
{{- define "crusoe.launcher.torchtitan.config" }}
{{- $own := get .Values.launchers "torchtitan" }}
{{- $p := .Values.parallelism }}
{{- $is2 := eq $own.version "0.2" }}
{{- $inTokens := eq $own.version "main" }}
{{- $global := .Run.globalBatch }}
{{- $micro := int64 .Values.batch.micro }}
{{- $length := int64 .Values.sequenceLength }}
{{- $pipelines := gt (int64 $p.pipeline) 1 }}
{{- $microBatches := div $global (max 1 (mul $micro .Run.dataParallel)) }}
{{- $evaluates := gt (int64 .Values.evaluation.batches) 0 }}
{{- $optimizer := $is2 | ternary "optimizer" "optimizer.param_groups.0.optimizer_kwargs" }}
{{- $rate := include "crusoe.setting" (list . "optimizer.learningRate") }}
{{- $least := include "crusoe.setting" (list . "optimizer.minLearningRate") }}
{{- $validation := $is2 | ternary "validation" "validator" }}
{{- if $is2 }}
model.name: {{ $own.module }}
model.flavor: {{ quote $own.recipe }}
model.hf_assets_path: {{ quote .Values.tokenizer.path }}
job.dump_folder: {{ .Run.directory | quote }}
profiling.enable_profiling: false
{{- else }}
hf_assets_path: {{ quote .Values.tokenizer.path }}
dump_folder: {{ .Run.directory | quote }}
# Recipes record a profile every 100 steps.
profiler.enable_profiling: false
{{- end }}
metrics.log_freq: 1
metrics.enable_tensorboard: true
metrics.save_tb_folder: tensorboard
{{- if .Values.wandb.project }}
metrics.enable_wandb: true
{{- end }}
metrics.disable_color_printing: true
{{- if .Values.steps }}
training.steps: {{ int64 .Values.steps }}
{{- end }}
training.mixed_precision_param: {{ eq .Values.precision "fp32" | ternary "float32" "bfloat16" }}
{{- if $inTokens }}
training.max_context_length: {{ $length }}
training.num_tokens_per_microbatch_per_dp_rank: {{ mul $micro $length }}
training.num_tokens_per_train_step: {{ mul $global $length }}
{{- if $pipelines }}
parallelism.num_pp_microbatches: {{ $microBatches }}
{{- end }}
{{- else }}
training.seq_len: {{ $length }}
# A pipeline gets all micro-batches of a step at once, and cuts them itself.
training.local_batch_size: {{ $pipelines | ternary (mul $micro $microBatches) $micro }}
training.global_batch_size: {{ $global }}
{{- if $pipelines }}
parallelism.pipeline_parallel_microbatch_size: {{ $micro }}
{{- end }}
{{ $is2 | ternary "training" "dataloader" }}.dataset: {{ $own.dataset }}
{{ $is2 | ternary "training" "dataloader" }}.dataset_path: {{ quote $own.datasetPath }}
{{- end }}
parallelism.tensor_parallel_degree: {{ int64 $p.tensor }}
parallelism.pipeline_parallel_degree: {{ int64 $p.pipeline }}
parallelism.context_parallel_degree: {{ int64 $p.context }}
parallelism.expert_parallel_degree: {{ int64 $p.expert }}
{{- if $pipelines }}
# Of the schedules with several chunks of layers, torchtitan gives a stage two where nothing else is set.
parallelism.pipeline_parallel_schedule: {{ eq (int64 $p.virtualPipeline) 1 | ternary "1F1B" "Interleaved1F1B" }}
{{- end }}
{{- if $is2 }}
parallelism.expert_tensor_parallel_degree: {{ gt (int64 $p.expert) 1 | ternary (include "crusoe.expertTensor" .) "1" }}
{{- else }}
parallelism.enable_sequence_parallel: {{ $p.sequence }}
{{- if or $pipelines (gt (int64 $p.expert) 1) }}
# CUDA graphs are on, and can neither do pipelines nor the usual exchange among experts.
training.disable_cuda_graphs: true
{{- end }}
{{- end }}
{{- with .Values.checkpoint.enabled }}
checkpoint.enable: true
checkpoint.folder: {{ printf "%s/checkpoints" $.Run.home | quote }}
checkpoint.interval: {{ int64 $.Values.checkpoint.interval }}
# By default the last one has the weights alone, from which no later start can resume.
checkpoint.last_save_model_only: false
{{- end }}
{{- with .Values.checkpoint.from }}
checkpoint.initial_load_path: {{ quote . }}
checkpoint.initial_load_in_hf: {{ eq $own.weights "huggingface" }}
{{- if not $.Values.checkpoint.enabled }}
# Only checkpoints load weights; the folder stays empty.
checkpoint.enable: true
checkpoint.load_only: true
checkpoint.folder: {{ printf "%s/none" $.Run.directory | quote }}
{{- end }}
{{- end }}
# A rank that waits longer for others ends the run; by default 100 seconds, less than a large checkpoint takes to save.
comm.init_timeout_seconds: 1800
comm.train_timeout_seconds: 600
{{- with $rate }}
{{ $optimizer }}.lr: {{ . }}
{{- end }}
{{- with include "crusoe.setting" (list . "optimizer.weightDecay") }}
{{ $optimizer }}.weight_decay: {{ . }}
{{- end }}
{{- if and $rate $least }}
lr_scheduler.min_lr_factor: {{ divf $least $rate }}
{{- end }}
{{- with include "crusoe.setting" (list . "optimizer.warmupSteps") }}
lr_scheduler.warmup_steps: {{ . }}
{{- end }}
{{- with include "crusoe.setting" (list . "optimizer.decay") }}
lr_scheduler.decay_type: {{ . }}
{{- end }}
{{- with include "crusoe.setting" (list . "optimizer.clipGradient") }}
training.max_norm: {{ . }}
{{- end }}
{{ $validation }}.enable: {{ $evaluates }}
{{- if $evaluates }}
{{ $validation }}.freq: {{ int64 .Values.evaluation.interval }}
{{ $validation }}.steps: {{ int64 .Values.evaluation.batches }}
{{- if $is2 }}
validation.seq_len: {{ $length }}
validation.local_batch_size: {{ $pipelines | ternary (mul $micro $microBatches) $micro }}
{{- end }}
{{- if not $inTokens }}
{{ $is2 | ternary "validation" "validator.dataloader" }}.dataset: {{ $own.dataset }}
{{ $is2 | ternary "validation" "validator.dataloader" }}.dataset_path: {{ quote $own.datasetPath }}
{{- end }}
{{- end }}
{{- $recompute := (include "crusoe.recompute" . | fromYaml).granularity }}
{{- if and $is2 (ne $recompute "none") }}
activation_checkpoint.mode: {{ $recompute }}
{{- end }}
{{- end }}
{{- define "crusoe.launcher.torchtitan.args" }}
{{- $own := get .Values.launchers "torchtitan" }}
{{- $options := deepCopy .Run.config }}
{{- range $path, $value := include "crusoe.leaves" (list $own.config "") | fromYaml }}
{{- $_ := set $options $path $value }}
{{- end }}
{{- if ne $own.version "0.2" }}
- --module
- {{ toJson $own.module }}
- --config
- {{ toJson $own.recipe }}
{{- end }}
{{- range $path, $value := $options }}
{{- if kindIs "bool" $value }}
- {{ $value | ternary $path (regexReplaceAll "([^.]+)$" $path "no_${1}") | printf "--%s" | toJson }}
{{- else }}
- {{ printf "--%s" $path | toJson }}
{{- if kindIs "invalid" $value }}
- "None"
{{- else if kindIs "slice" $value }}
- {{ join "," $value | toJson }}
{{- else }}
- {{ kindIs "string" $value | ternary $value (toJson $value) | toJson }}
{{- end }}
{{- end }}
{{- end }}
{{- $recompute := (include "crusoe.recompute" . | fromYaml).granularity }}
{{- if and (ne $own.version "0.2") (ne $recompute "none") }}
- {{ printf "activation-checkpoint:%s" $recompute }}
{{- end }}
{{- end }}
{{- define "crusoe.launcher.torchtitan.env" }}
- name: PYTORCH_ALLOC_CONF
  value: expandable_segments:True
# Data, tokenizer and weights are in the storage: a rank that lacks one stops, instead of all of them fetching it.
- name: HF_HUB_OFFLINE
  value: "1"
{{- if gt (int64 .Values.parallelism.pipeline) 1 }}
{{- $world := .Run.worldSize }}
# The first rank of the last stage, which knows the loss; torchtitan warns when the variable does not name it.
- name: LOG_RANK
  value: {{ sub $world (div $world .Values.parallelism.pipeline) | quote }}
{{- end }}
{{- end }}
{{- define "crusoe.launcher.torchtitan.mounts" }}{{ end }}
{{- define "crusoe.launcher.torchtitan.files" }}
{{ toJson (get .Values.launchers "torchtitan").files }}
{{- end }}
{{- define "crusoe.launcher.torchtitan.beforeLaunch" }}{{ end }}
{{- define "crusoe.launcher.torchtitan.launch" }}{{ end }}
{{- define "crusoe.launcher.torchtitan.beforeRank" }}
{{- if (get .Values.launchers "torchtitan").files }}
# Recipes among the user's files are modules, beside those of the image.
export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}/etc/chartgen
{{- end }}
{{- end }}
{{- define "crusoe.launcher.torchtitan.programs" }}{{ end }}
