{{/*
nemo-1: NeMo 1 pretraining of GPT models, configured by Hydra.
What the templates of a run include by these names; empty = this launcher needs none.
*/}}
{{- define "coreweave.launcher.nemo-1.config" }}
{{- $p := .Values.parallelism }}
{{- $m := .Values.model }}
{{- $experts := int64 $m.experts }}
{{- $fp8 := eq .Values.precision "fp8" }}
{{- $gpt := eq $m.family "gpt" }}
{{- $data := include "coreweave.dataPrefixes" . | fromYamlArray }}
trainer:
  num_nodes: {{ int64 .Values.nodes }}
  devices: {{ .Run.gpusPerNode }}
  precision: {{ get (dict "fp16" 16 "fp32" 32) .Values.precision | default "bf16" }}
  {{- if .Values.steps }}
  max_steps: {{ int64 .Values.steps }}
  {{- end }}
  log_every_n_steps: 1
  val_check_interval: {{ int64 .Values.evaluation.interval }}
  limit_val_batches: {{ int64 .Values.evaluation.batches }}
  limit_test_batches: {{ int64 .Values.evaluation.batches }}
  accumulate_grad_batches: 1
  {{- if not (kindIs "invalid" .Values.optimizer.clipGradient) }}
  gradient_clip_val: {{ toJson (float64 .Values.optimizer.clipGradient) }}
  {{- end }}
exp_manager:
  # Logs are this run's own; checkpoints are the release's, so that a restarted run resumes.
  explicit_log_dir: {{ .Run.directory | quote }}
  create_checkpoint_callback: {{ .Values.checkpoint.enabled }}
  resume_if_exists: {{ .Values.checkpoint.enabled }}
  resume_ignore_no_checkpoint: true
  checkpoint_callback_params:
    dirpath: {{ printf "%s/checkpoints" .Run.home | quote }}
    every_n_train_steps: {{ int64 .Values.checkpoint.interval }}
    monitor: step
    mode: max
    save_top_k: {{ include "coreweave.setting" (list . "checkpoint.keep") }}
  log_step_timing: true
{{- with .Values.wandb.project }}
  create_wandb_logger: true
  wandb_logger_kwargs:
    project: {{ quote . }}
    name: {{ $.Run.name }}
{{- end }}
{{- with .Values.checkpoint.from }}
restore_from_path: {{ . | toJson }}
{{- end }}
model:
  mcore_gpt: true
  transformer_engine: true
  megatron_amp_O2: {{ ne .Values.precision "fp32" }}
  micro_batch_size: {{ int64 .Values.batch.micro }}
  global_batch_size: {{ .Run.globalBatch }}
  tensor_model_parallel_size: {{ int64 $p.tensor }}
  pipeline_model_parallel_size: {{ int64 $p.pipeline }}
  # NeMo counts chunks for each pipeline rank and takes null for none.
  virtual_pipeline_model_parallel_size: {{ gt (int64 $p.virtualPipeline) 1 | ternary (int64 $p.virtualPipeline) "null" }}
  context_parallel_size: {{ int64 $p.context }}
  expert_model_parallel_size: {{ int64 $p.expert }}
  sequence_parallel: {{ $p.sequence }}
  encoder_seq_length: {{ int64 .Values.sequenceLength }}
  max_position_embeddings: {{ int64 .Values.sequenceLength }}
  num_layers: {{ int64 $m.layers }}
  hidden_size: {{ int64 $m.hiddenSize }}
  ffn_hidden_size: {{ $m.ffnHiddenSize | default (mul 4 $m.hiddenSize) | int64 }}
  num_attention_heads: {{ int64 $m.attentionHeads }}
  num_query_groups: {{ $m.queryGroups | default $m.attentionHeads | int64 }}
  num_moe_experts: {{ gt $experts 0 | ternary $experts "null" }}
  {{- if $experts }}
  moe_router_topk: {{ int64 $m.expertsPerToken }}
  {{- end }}
  normalization: {{ $gpt | ternary "layernorm" "rmsnorm" }}
  position_embedding_type: {{ $gpt | ternary "learned_absolute" "rope" }}
  activation: {{ $gpt | ternary "gelu" "fast-swiglu" }}
  bias: {{ $gpt }}
  share_embeddings_and_output_weights: {{ kindIs "invalid" $m.tiedEmbeddings | ternary $gpt $m.tiedEmbeddings }}
  {{- if not $gpt }}
  {{- with $m.rotaryBase | default (eq (int64 $m.vocabularySize) 128256 | ternary 500000 0) }}
  rotary_base: {{ int64 . }}
  {{- end }}
  {{- end }}
  {{- with $m.initStandardDeviation }}
  init_method_std: {{ toJson (float64 .) }}
  {{- end }}
  {{- $recompute := include "coreweave.recompute" . | fromYaml }}
  {{- $full := eq $recompute.granularity "full" }}
  activations_checkpoint_granularity: {{ eq $recompute.granularity "none" | ternary "null" $recompute.granularity }}
  activations_checkpoint_method: {{ $full | ternary $recompute.method "null" }}
  activations_checkpoint_num_layers: {{ $full | ternary (int64 $recompute.layers) "null" }}
  fp8: {{ $fp8 }}
  fp8_hybrid: {{ $fp8 }}
  tokenizer:
    {{- include "coreweave.nemoTokenizer" . | nindent 4 }}
  nsys_profile:
    enabled: {{ .Values.profile.enabled }}
    start_step: {{ int64 .Values.profile.startStep }}
    end_step: {{ int64 .Values.profile.endStep }}
    ranks: {{ toJson .Values.profile.ranks }}
  optim:
    name: {{ $p.distributedOptimizer | ternary (get .Values.launchers "nemo-1").distributedOptimizer "fused_adam" }}
    {{- $o := .Values.optimizer }}
    {{- with $o.learningRate }}
    lr: {{ toJson (float64 .) }}
    {{- end }}
    {{- if not (kindIs "invalid" $o.weightDecay) }}
    weight_decay: {{ toJson (float64 $o.weightDecay) }}
    {{- end }}
    {{- $schedule := dict }}
    {{- range $key, $native := dict "minLearningRate" "min_lr" "warmupSteps" "warmup_steps" }}
    {{- if not (kindIs "invalid" (index $o $key)) }}{{ $_ := set $schedule $native (index $o $key | float64) }}{{ end }}
    {{- end }}
    {{- if $o.decay }}{{ $_ := set $schedule "name" "CosineAnnealing" }}{{ end }}
    {{- with $schedule }}
    sched: {{ toJson . }}
    {{- end }}
  data:
    data_impl: {{ empty $data | ternary "mock" "mmap" }}
    # weight, path, weight, path, ...
    data_prefix:
      {{- range $data }}
      - {{ .weight }}
      - {{ .path | quote }}
      {{- else }} []
      {{- end }}
    {{- if $data }}
    index_mapping_dir: {{ include "coreweave.dataCache" . | quote }}
    {{- end }}
    splits_string: {{ .Values.data.split | quote }}
    seq_length: {{ int64 .Values.sequenceLength }}
{{- end }}
{{- define "coreweave.launcher.nemo-1.args" }}
{{- $overrides := dict }}
{{- $own := .Run.launcher.config | default (dict) }}
{{- range list .Run.config $own }}
{{- range $path, $literal := include "coreweave.hydra" (list . "") | fromYaml }}
{{- $_ := set $overrides $path $literal }}
{{- end }}
{{- end }}
{{- range $path, $literal := $overrides }}
- {{ printf "++%s=%s" $path $literal | toJson }}
{{- end }}
{{- end }}
{{- define "coreweave.launcher.nemo-1.env" }}
- {name: OMP_NUM_THREADS, value: "12"}
{{- if or (gt (int64 .Values.parallelism.tensor) 1) (gt (int64 .Values.parallelism.context) 1) }}
# Megatron's overlap of communication with these parallel sizes relies on the order of one connection.
- {name: CUDA_DEVICE_MAX_CONNECTIONS, value: "1"}
{{- end }}
- {name: TORCH_NCCL_AVOID_RECORD_STREAMS, value: "1"}
{{- end }}
{{- define "coreweave.launcher.nemo-1.files" }}{{ end }}
{{- define "coreweave.launcher.nemo-1.beforeLaunch" }}{{ end }}
{{- define "coreweave.launcher.nemo-1.launch" }}{{ end }}
{{- define "coreweave.launcher.nemo-1.beforeRank" }}
{{- if (get .Values.launchers "nemo-1").dllogger }}
# DLLogger is not part of every NeMo image; without it, step times are in NeMo's own log only.
if python3 -c 'import dllogger' 2>/dev/null; then
  mkdir -p "$RUN_DIRECTORY/dllogger/rank-$NODE_RANK"
  set -- "$@" \
    ++exp_manager.create_dllogger_logger=true \
    ++exp_manager.dllogger_logger_kwargs.verbose=true \
    ++exp_manager.dllogger_logger_kwargs.stdout=true \
    "++exp_manager.dllogger_logger_kwargs.json_file='$RUN_DIRECTORY/dllogger/rank-$NODE_RANK/dllogger.json'"
elif [[ $LOCAL_RANK == 0 ]]; then
  echo 'chartgen: this image has no DLLogger; add it for dllogger.json, or set launchers.nemo-1.dllogger=false' >&2
fi
{{- end }}
{{- end }}
{{- define "coreweave.launcher.nemo-1.programs" }}{{ end }}
