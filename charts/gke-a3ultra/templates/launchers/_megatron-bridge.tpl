{{/*
megatron-bridge: Megatron-Bridge pretraining, SFT and LoRA, by portable values or by one of its recipes.
What the templates of a run include by these names; empty = this launcher needs none.
*/}}
{{- define "gke-a3ultra.launcher.megatron-bridge.config" }}
{{- $p := .Values.parallelism }}
{{- $m := .Values.model }}
{{- $own := get .Values.launchers "megatron-bridge" }}
{{- $portable := not $own.recipe }}
{{- $release := include "gke-a3ultra.imageRelease" . | int64 }}
{{- $gpt := eq $m.family "gpt" }}
{{- $evaluates := gt (int64 .Values.evaluation.batches) 0 }}
{{- $data := include "gke-a3ultra.dataPrefixes" . | fromYamlArray }}
{{- $tokenizer := .Values.tokenizer }}
{{- $recompute := include "gke-a3ultra.recompute" . | fromYaml }}
{{- $checkpoints := printf "%s/checkpoints" .Run.home | quote }}
{{- $pretrains := eq $own.mode "pretrain" }}
model:
  tensor_model_parallel_size: {{ int64 $p.tensor }}
  pipeline_model_parallel_size: {{ int64 $p.pipeline }}
  virtual_pipeline_model_parallel_size: {{ gt (int64 $p.virtualPipeline) 1 | ternary (int64 $p.virtualPipeline) "null" }}
  context_parallel_size: {{ int64 $p.context }}
  expert_model_parallel_size: {{ int64 $p.expert }}
{{- if or $portable $p.expertTensor }}
  expert_tensor_parallel_size: {{ with $p.expertTensor }}{{ int64 . }}{{ else }}null{{ end }}
{{- end }}
  sequence_parallel: {{ $p.sequence }}
{{- if $portable }}
  num_layers: {{ int64 $m.layers }}
  hidden_size: {{ int64 $m.hiddenSize }}
  ffn_hidden_size: {{ $m.ffnHiddenSize | default (mul 4 $m.hiddenSize) | int64 }}
  num_attention_heads: {{ int64 $m.attentionHeads }}
  num_query_groups: {{ $m.queryGroups | default $m.attentionHeads | int64 }}
  seq_length: {{ int64 .Values.sequenceLength }}
  normalization: {{ $gpt | ternary "LayerNorm" "RMSNorm" }}
  position_embedding_type: {{ $gpt | ternary "learned_absolute" "rope" }}
  activation_func: {{ $gpt | ternary "gelu" "silu" }}
  gated_linear_unit: {{ not $gpt }}
  add_bias_linear: {{ $gpt }}
  share_embeddings_and_output_weights: {{ kindIs "invalid" $m.tiedEmbeddings | ternary $gpt $m.tiedEmbeddings }}
  init_method_std: {{ include "gke-a3ultra.setting" (list . "model.initStandardDeviation") }}
{{- if not $gpt }}
{{- with $m.rotaryBase | default (eq (int64 $m.vocabularySize) 128256 | ternary 500000 0) }}
  rotary_base: {{ int64 . }}
{{- end }}
  attention_dropout: 0.0
  hidden_dropout: 0.0
{{- end }}
{{- if $m.experts }}
  num_moe_experts: {{ int64 $m.experts }}
  moe_router_topk: {{ int64 $m.expertsPerToken }}
  moe_router_load_balancing_type: aux_loss
  moe_aux_loss_coeff: 0.01
  moe_grouped_gemm: true
  moe_token_dispatcher_type: alltoall
{{- end }}
{{- end }}
{{- if or $portable (ne $recompute.granularity "none") }}
  recompute_granularity: {{ ne $recompute.granularity "none" | ternary $recompute.granularity "null" }}
{{- end }}
{{- if eq $recompute.granularity "full" }}
  recompute_method: {{ $recompute.method }}
  recompute_num_layers: {{ int64 $recompute.layers }}
{{- end }}
train:
  micro_batch_size: {{ int64 .Values.batch.micro }}
  global_batch_size: {{ .Run.globalBatch }}
{{- if .Values.steps }}
  train_iters: {{ int64 .Values.steps }}
{{- end }}
{{- if .Values.checkpoint.enabled }}
  # Saves once more before Kubernetes takes the machines away.
  exit_signal_handler: true
{{- end }}
{{- if ge $release 2604 }}
validation:
{{- end }}
  eval_interval: {{ int64 .Values.evaluation.interval }}
  eval_iters: {{ int64 .Values.evaluation.batches }}
{{- if $portable }}
{{- $formats := dict "bf16" "bf16_mixed" "fp16" "fp16_mixed" "mxfp8" "bf16_with_mxfp8_mixed" "nvfp4" "bf16_with_nvfp4_mixed" }}
{{- $_ := set $formats "fp8" (printf "bf16_with_fp8_%s_scaling_mixed" $own.fp8Scaling) }}
mixed_precision: {{ get $formats .Values.precision }}
ddp:
  use_distributed_optimizer: {{ $p.distributedOptimizer }}
{{- end }}
{{- $rates := dict "lr" "learningRate" "min_lr" "minLearningRate" "weight_decay" "weightDecay" "clip_grad" "clipGradient" }}
optimizer:
{{- range $name, $key := $rates }}
{{- if or $portable (not (kindIs "invalid" (index $.Values.optimizer $key))) }}
  {{ $name }}: {{ include "gke-a3ultra.setting" (list $ (printf "optimizer.%s" $key)) }}
{{- end }}
{{- end }}
{{- if $portable }}
  use_distributed_optimizer: {{ $p.distributedOptimizer }}
{{- end }}
scheduler:
{{- if or $portable .Values.optimizer.decay }}
  lr_decay_style: {{ include "gke-a3ultra.setting" (list . "optimizer.decay") }}
{{- end }}
{{- if or $portable (not (kindIs "invalid" .Values.optimizer.weightDecay)) }}
  start_weight_decay: {{ include "gke-a3ultra.setting" (list . "optimizer.weightDecay") }}
  end_weight_decay: {{ include "gke-a3ultra.setting" (list . "optimizer.weightDecay") }}
{{- end }}
{{- if or $portable (not (kindIs "invalid" .Values.optimizer.warmupSteps)) }}
{{- $warmup := include "gke-a3ultra.setting" (list . "optimizer.warmupSteps") | int64 }}
  lr_warmup_iters: {{ $warmup }}
{{- if and .Values.steps (ge $warmup (int64 .Values.steps)) }}
  # Bridge wants the warm-up to end before the decay does, also in a run that ends before either.
  lr_decay_iters: {{ add1 $warmup }}
{{- end }}
{{- end }}
{{- if $portable }}
dataset:
  # Up to 26.06 the dataset's length has Megatron Core's name.
  {{ ge $release 2608 | ternary "seq_length" "sequence_length" }}: {{ int64 .Values.sequenceLength }}
  split: {{ $evaluates | ternary .Values.data.split "100,0,0" | quote }}
{{- else if and $data $pretrains }}
dataset:
  split: {{ $evaluates | ternary .Values.data.split "100,0,0" | quote }}
{{- end }}
{{- if and $data $pretrains }}
  {{- $paths := list }}
  {{- $weights := list }}
  {{- range $data }}
  {{- $paths = append $paths .path }}
  {{- $weights = append $weights .weight }}
  {{- end }}
  # 26.02 has only this of several ways: paths, and the weight of each.
  blend:
    - {{ toRawJson $paths }}
    - {{ gt (len $data) 1 | ternary (toRawJson $weights) "null" }}
  path_to_cache: {{ include "gke-a3ultra.dataCache" . | quote }}
{{- end }}
{{- if and $portable (eq $tokenizer.kind "none") }}
tokenizer:
  tokenizer_type: NullTokenizer
  vocab_size: {{ int64 $m.vocabularySize }}
{{- else if eq $tokenizer.kind "gpt2" }}
tokenizer:
  tokenizer_type: GPT2BPETokenizer
  vocab_file: {{ printf "%s/gpt2-vocab.json" $tokenizer.path | quote }}
  merge_file: {{ printf "%s/gpt2-merges.txt" $tokenizer.path | quote }}
{{- else if eq $tokenizer.kind "sentencepiece" }}
tokenizer:
  tokenizer_type: {{ $gpt | ternary "GPTSentencePieceTokenizer" "Llama2Tokenizer" }}
  tokenizer_model: {{ printf "%s/tokenizer.model" $tokenizer.path | quote }}
{{- else if eq $tokenizer.kind "huggingface" }}
tokenizer:
  tokenizer_type: HuggingFaceTokenizer
  tokenizer_model: {{ quote $tokenizer.path }}
{{- end }}
# Recipes save into the working directory, and resume from it without a word: both are always set.
checkpoint:
  save: {{ .Values.checkpoint.enabled | ternary $checkpoints "null" }}
  load: {{ .Values.checkpoint.enabled | ternary $checkpoints "null" }}
{{- if .Values.checkpoint.enabled }}
  save_interval: {{ int64 .Values.checkpoint.interval }}
{{- with .Values.checkpoint.keep }}
  most_recent_k: {{ int64 . }}
{{- end }}
{{- if and $portable (ge $release 2604) }}
  # By a process that stays, the default of use_persistent_ckpt_worker; a recipe decides itself, since FSDP saves otherwise.
  async_save: true
{{- end }}
{{- end }}
{{- with .Values.checkpoint.from }}
  pretrained_checkpoint: {{ quote . }}
{{- end }}
{{- if .Values.profile.enabled }}
profiling:
  use_nsys_profiler: true
  profile_step_start: {{ int64 .Values.profile.startStep }}
  # Bridge stops before this step, the value's last one is recorded.
  profile_step_end: {{ add1 .Values.profile.endStep }}
  profile_ranks: {{ toJson .Values.profile.ranks }}
{{- end }}
logger:
  log_interval: 1
  log_throughput: true
  tensorboard_dir: {{ printf "%s/tensorboard" .Run.directory | quote }}
{{- with .Values.wandb.project }}
  wandb_project: {{ quote . }}
  wandb_exp_name: {{ $.Run.name }}
  # By default a folder of the checkpoints, which a run may not have.
  wandb_save_dir: {{ $.Run.directory | quote }}
{{- end }}
{{- with .Values.mlflow.experiment }}
  mlflow_experiment: {{ quote . }}
  mlflow_run_name: {{ $.Run.name }}
{{- if ge $release 2606 }}
  # Each checkpoint would be uploaded to the server.
  mlflow_log_artifacts: false
{{- end }}
{{- end }}
{{- end }}
{{- define "gke-a3ultra.launcher.megatron-bridge.args" }}
{{- $own := get .Values.launchers "megatron-bridge" }}
{{- $release := include "gke-a3ultra.imageRelease" . | int64 }}
{{- $config := deepCopy .Run.config }}
- --recipe
- {{ $own.recipe | default "vanilla_gpt_pretrain_config" | toJson }}
{{- if ge $release 2608 }}
- --mode
- {{ $own.mode }}
{{- else if eq $own.mode "lora" }}
{{- /* Up to 26.06 the recipe's name contains the mode, and LoRA is a scheme of its own. */}}
- --peft_scheme
- lora
{{- end }}
{{- with $own.dataset }}
- --dataset
- {{ toJson . }}
{{- end }}
{{- /* A recipe keeps each section that the values leave empty. */}}
{{- range $section, $settings := $config }}
{{- if not $settings }}{{ $_ := unset $config $section }}{{ end }}
{{- end }}
{{- $overrides := dict }}
{{- range list $config $own.config }}
{{- range $path, $literal := include "gke-a3ultra.hydra" (list . "") | fromYaml }}
{{- $_ := set $overrides $path $literal }}
{{- end }}
{{- end }}
{{- range $path, $literal := $overrides }}
- {{ printf "%s=%s" $path $literal | toJson }}
{{- end }}
{{- end }}
{{- define "gke-a3ultra.launcher.megatron-bridge.env" }}
{{- $own := get .Values.launchers "megatron-bridge" }}
{{- if and (not $own.recipe) (or (gt (int64 .Values.parallelism.tensor) 1) (gt (int64 .Values.parallelism.context) 1)) }}
# Megatron's overlap of communication with these parallel sizes relies on the order of one connection. A recipe has its
# own value, which differs between GPUs.
- {name: CUDA_DEVICE_MAX_CONNECTIONS, value: "1"}
{{- end }}
{{- end }}
{{- define "gke-a3ultra.launcher.megatron-bridge.files" }}{{ end }}
{{- define "gke-a3ultra.launcher.megatron-bridge.beforeLaunch" }}{{ end }}
{{- define "gke-a3ultra.launcher.megatron-bridge.launch" }}{{ end }}
{{- define "gke-a3ultra.launcher.megatron-bridge.beforeRank" }}{{ end }}
{{- define "gke-a3ultra.launcher.megatron-bridge.programs" }}{{ end }}
