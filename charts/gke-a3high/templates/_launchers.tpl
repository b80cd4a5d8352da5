{{/* megatron-lm: Megatron-LM pretraining of GPT models, configured by command line options */}}
{{- define "gke-a3high.launcher.megatron-lm.config" }}
{{- $p := .Values.parallelism }}
{{- $m := .Values.model }}
{{- $gpt := eq $m.family "gpt" }}
{{- $evaluates := gt (int64 .Values.evaluation.batches) 0 }}
{{- $data := include "gke-a3high.dataPrefixes" . | fromYamlArray }}
{{- $tokenizer := .Values.tokenizer }}
num-layers: {{ int64 $m.layers }}
hidden-size: {{ int64 $m.hiddenSize }}
ffn-hidden-size: {{ $m.ffnHiddenSize | default (mul 4 $m.hiddenSize) | int64 }}
num-attention-heads: {{ int64 $m.attentionHeads }}
{{- if and $m.queryGroups (ne (int64 $m.queryGroups) (int64 $m.attentionHeads)) }}
group-query-attention: true
num-query-groups: {{ int64 $m.queryGroups }}
{{- end }}
{{- if $m.experts }}
num-experts: {{ int64 $m.experts }}
moe-router-topk: {{ int64 $m.expertsPerToken }}
moe-router-load-balancing-type: aux_loss
moe-aux-loss-coeff: 1.0e-2
moe-grouped-gemm: true
moe-token-dispatcher-type: alltoall
{{- end }}
seq-length: {{ int64 .Values.sequenceLength }}
max-position-embeddings: {{ int64 .Values.sequenceLength }}
normalization: {{ $gpt | ternary "LayerNorm" "RMSNorm" }}
position-embedding-type: {{ $gpt | ternary "learned_absolute" "rope" }}
swiglu: {{ not $gpt }}
disable-bias-linear: {{ not $gpt }}
untie-embeddings-and-output-weights: {{ kindIs "invalid" $m.tiedEmbeddings | ternary (not $gpt) (not $m.tiedEmbeddings) }}
{{- if not $gpt }}
{{- with $m.rotaryBase | default (eq (int64 $m.vocabularySize) 128256 | ternary 500000 0) }}
rotary-base: {{ int64 . }}
{{- end }}
attention-dropout: 0
hidden-dropout: 0
{{- end }}
tensor-model-parallel-size: {{ int64 $p.tensor }}
pipeline-model-parallel-size: {{ int64 $p.pipeline }}
{{- if and (gt (int64 $p.virtualPipeline) 1) (include "gke-a3high.unevenStages" .) }}
num-virtual-stages-per-pipeline-rank: {{ int64 $p.virtualPipeline }}
{{- else if gt (int64 $p.virtualPipeline) 1 }}
# Older versions have only this one of the two.
num-layers-per-virtual-pipeline-stage: {{ div (include "gke-a3high.pipelineLayers" .) (mul $p.pipeline $p.virtualPipeline) }}
{{- end }}
context-parallel-size: {{ int64 $p.context }}
expert-model-parallel-size: {{ int64 $p.expert }}
{{- with $p.expertTensor }}
expert-tensor-parallel-size: {{ int64 . }}
{{- end }}
sequence-parallel: {{ $p.sequence }}
use-distributed-optimizer: {{ $p.distributedOptimizer }}
micro-batch-size: {{ int64 .Values.batch.micro }}
global-batch-size: {{ include "gke-a3high.globalBatch" . }}
bf16: {{ has .Values.precision (list "bf16" "fp8" "mxfp8" "nvfp4") }}
fp16: {{ eq .Values.precision "fp16" }}
{{- if eq .Values.precision "fp8" }}
fp8-format: hybrid
{{- else if eq .Values.precision "mxfp8" }}
# A scale for each 32 values leaves no need for the wider range of hybrid.
fp8-format: e4m3
fp8-recipe: mxfp8
{{- else if eq .Values.precision "nvfp4" }}
fp4-format: e2m1
{{- end }}
{{- $recompute := include "gke-a3high.recompute" . | fromYaml }}
{{- if ne $recompute.granularity "none" }}
recompute-granularity: {{ $recompute.granularity }}
{{- end }}
{{- if eq $recompute.granularity "full" }}
recompute-method: {{ $recompute.method }}
recompute-num-layers: {{ int64 $recompute.layers }}
{{- end }}
{{- if .Values.steps }}
train-iters: {{ int64 .Values.steps }}
{{- end }}
# Asked for even where nothing is evaluated; a share of the data that no evaluation reads stops the start.
eval-interval: {{ int64 .Values.evaluation.interval }}
eval-iters: {{ int64 .Values.evaluation.batches }}
split: {{ $evaluates | ternary .Values.data.split "100,0,0" | quote }}
{{- if $data }}
# weight, path, weight, path, ...; one path stands alone
data-path:
  {{- range $data }}
  {{- if gt (len $data) 1 }}
  - {{ .weight }}
  {{- end }}
  - {{ .path | quote }}
  {{- end }}
data-cache-path: {{ include "gke-a3high.dataCache" . | quote }}
{{- else }}
mock-data: true
{{- end }}
{{- if eq $tokenizer.kind "none" }}
tokenizer-type: NullTokenizer
vocab-size: {{ int64 $m.vocabularySize }}
{{- else if eq $tokenizer.kind "gpt2" }}
tokenizer-type: GPT2BPETokenizer
vocab-file: {{ printf "%s/gpt2-vocab.json" $tokenizer.path | quote }}
merge-file: {{ printf "%s/gpt2-merges.txt" $tokenizer.path | quote }}
{{- else if eq $tokenizer.kind "sentencepiece" }}
tokenizer-type: {{ $gpt | ternary "GPTSentencePieceTokenizer" "Llama2Tokenizer" }}
tokenizer-model: {{ printf "%s/tokenizer.model" $tokenizer.path | quote }}
{{- else }}
tokenizer-type: HuggingFaceTokenizer
tokenizer-model: {{ quote $tokenizer.path }}
{{- end }}
{{- if .Values.checkpoint.enabled }}
save: {{ printf "%s/checkpoints" (include "gke-a3high.home" .) | quote }}
load: {{ printf "%s/checkpoints" (include "gke-a3high.home" .) | quote }}
save-interval: {{ int64 .Values.checkpoint.interval }}
# Saves once more before Kubernetes takes the machines away.
exit-signal-handler: true
{{- end }}
{{- with .Values.checkpoint.from }}
pretrained-checkpoint: {{ quote . }}
{{- end }}
{{- if .Values.profile.enabled }}
profile: true
profile-step-start: {{ int64 .Values.profile.startStep }}
# Megatron-LM stops before this step, the value's last one is recorded.
profile-step-end: {{ add1 .Values.profile.endStep }}
profile-ranks: {{ toJson .Values.profile.ranks }}
{{- end }}
lr: {{ include "gke-a3high.setting" (list . "optimizer.learningRate") }}
min-lr: {{ include "gke-a3high.setting" (list . "optimizer.minLearningRate") }}
lr-decay-style: {{ include "gke-a3high.setting" (list . "optimizer.decay") }}
{{- if not (kindIs "invalid" .Values.optimizer.warmupSteps) }}
lr-warmup-iters: {{ int64 .Values.optimizer.warmupSteps }}
{{- if ge (int64 .Values.optimizer.warmupSteps) (int64 .Values.steps) }}
# Megatron-LM wants the warm-up to end before the decay does, also in a run that ends before either.
lr-decay-iters: {{ add1 .Values.optimizer.warmupSteps }}
{{- end }}
{{- end }}
clip-grad: {{ include "gke-a3high.setting" (list . "optimizer.clipGradient") }}
weight-decay: {{ include "gke-a3high.setting" (list . "optimizer.weightDecay") }}
init-method-std: {{ include "gke-a3high.setting" (list . "model.initStandardDeviation") }}
# From here on the guide's GPT-3 recipe and logs; the user's own configuration wins over it.
adam-beta1: 0.9
adam-beta2: 0.95
log-interval: 1
log-throughput: true
tensorboard-dir: {{ printf "%s/tensorboard" (include "gke-a3high.runDirectory" .) | quote }}
{{- end }}
{{- define "gke-a3high.launcher.megatron-lm.args" }}
{{- $options := include "gke-a3high.launcher.megatron-lm.config" . | fromYaml }}
{{- with get $options "Error" }}{{ fail (printf "the settings of launcher megatron-lm are no YAML: %s" .) }}{{ end }}
{{- range $name, $value := (get .Values.launchers "megatron-lm").config }}
{{- $_ := set $options $name $value }}
{{- end }}
{{- range $name, $value := $options }}
{{- $left := or (kindIs "invalid" $value) (eq (toJson $value) "false") }}
{{- if not $left }}
- {{ printf "--%s" $name | toJson }}
{{- end }}
{{- range $left | ternary list (kindIs "slice" $value | ternary $value (list $value)) }}
{{- if ne (toJson .) "true" }}
- {{ kindIs "string" . | ternary . (toJson .) | toJson }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- define "gke-a3high.launcher.megatron-lm.env" }}
# Megatron-LM refuses tensor and context parallelism without it on GPUs before Blackwell.
- name: CUDA_DEVICE_MAX_CONNECTIONS
  value: "1"
{{- end }}
{{- define "gke-a3high.launcher.megatron-lm.mounts" }}

{{- end }}
{{- define "gke-a3high.launcher.megatron-lm.beforeLaunch" }}
# Rank 0 builds Megatron-LM's index helpers, on its own machine only; every machine needs them.
helpers=${1%/*}/megatron/core/datasets
if [[ -f $helpers/Makefile ]]; then make -C "$helpers"; fi
{{- end }}
{{- define "gke-a3high.launcher.megatron-lm.beforeRank" }}

{{- end }}
{{- define "gke-a3high.launcher.megatron-lm.program" }}

{{- end }}
{{/* nemo-1: NeMo 1 pretraining of GPT models, configured by Hydra */}}
{{- define "gke-a3high.launcher.nemo-1.config" }}
{{- $p := .Values.parallelism }}
{{- $m := .Values.model }}
{{- $experts := int64 $m.experts }}
{{- $fp8 := eq .Values.precision "fp8" }}
{{- $gpt := eq $m.family "gpt" }}
{{- $data := include "gke-a3high.dataPrefixes" . | fromYamlArray }}
trainer:
  num_nodes: {{ int64 .Values.nodes }}
  devices: {{ include "gke-a3high.gpusPerNode" . }}
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
  explicit_log_dir: {{ include "gke-a3high.runDirectory" . | quote }}
  create_checkpoint_callback: {{ .Values.checkpoint.enabled }}
  resume_if_exists: {{ .Values.checkpoint.enabled }}
  resume_ignore_no_checkpoint: true
  checkpoint_callback_params:
    dirpath: {{ printf "%s/checkpoints" (include "gke-a3high.home" .) | quote }}
    every_n_train_steps: {{ int64 .Values.checkpoint.interval }}
    monitor: step
    mode: max
    save_top_k: 2
  log_step_timing: true
{{- with .Values.checkpoint.from }}
restore_from_path: {{ . | toJson }}
{{- end }}
model:
  mcore_gpt: true
  transformer_engine: true
  megatron_amp_O2: {{ ne .Values.precision "fp32" }}
  micro_batch_size: {{ int64 .Values.batch.micro }}
  global_batch_size: {{ include "gke-a3high.globalBatch" . }}
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
  {{- $recompute := include "gke-a3high.recompute" . | fromYaml }}
  {{- $full := eq $recompute.granularity "full" }}
  activations_checkpoint_granularity: {{ eq $recompute.granularity "none" | ternary "null" $recompute.granularity }}
  activations_checkpoint_method: {{ $full | ternary $recompute.method "null" }}
  activations_checkpoint_num_layers: {{ $full | ternary (int64 $recompute.layers) "null" }}
  fp8: {{ $fp8 }}
  fp8_hybrid: {{ $fp8 }}
  tokenizer:
    {{- $kind := .Values.tokenizer.kind }}
    {{- $path := .Values.tokenizer.path }}
    {{- if or (eq $kind "none") (eq $kind "gpt2") }}
    library: megatron
    type: GPT2BPETokenizer
    vocab_file: {{ empty $path | ternary "null" (printf "%s/gpt2-vocab.json" $path | toJson) }}
    merge_file: {{ empty $path | ternary "null" (printf "%s/gpt2-merges.txt" $path | toJson) }}
    {{- else if eq $kind "sentencepiece" }}
    library: sentencepiece
    model: {{ printf "%s/tokenizer.model" $path | toJson }}
    {{- else }}
    library: huggingface
    type: {{ $path | toJson }}
    # Llama 3 has no other; NeMo's own default is the slow one.
    use_fast: true
    {{- end }}
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
    index_mapping_dir: {{ include "gke-a3high.dataCache" . | quote }}
    {{- end }}
    splits_string: {{ .Values.data.split | quote }}
    seq_length: {{ int64 .Values.sequenceLength }}
{{- end }}
{{- define "gke-a3high.launcher.nemo-1.args" }}
{{- $overrides := dict }}
{{- $own := (include "gke-a3high.launcher" . | fromYaml).config | default (dict) }}
{{- $config := include "gke-a3high.launcher.nemo-1.config" . | fromYaml }}
{{- with get $config "Error" }}{{ fail (printf "the settings of launcher nemo-1 are no YAML: %s" .) }}{{ end }}
{{- range list $config $own }}
{{- range $path, $literal := include "gke-a3high.hydra" (list . "") | fromYaml }}
{{- $_ := set $overrides $path $literal }}
{{- end }}
{{- end }}
{{- range $path, $literal := $overrides }}
- {{ printf "++%s=%s" $path $literal | toJson }}
{{- end }}
{{- end }}
{{- define "gke-a3high.launcher.nemo-1.env" }}
- name: OMP_NUM_THREADS
  value: "12"
{{- if or (gt (int64 .Values.parallelism.tensor) 1) (gt (int64 .Values.parallelism.context) 1) }}
# Megatron's overlap of communication with these parallel sizes relies on the order of one connection.
- name: CUDA_DEVICE_MAX_CONNECTIONS
  value: "1"
{{- end }}
- name: TORCH_NCCL_AVOID_RECORD_STREAMS
  value: "1"
{{- end }}
{{- define "gke-a3high.launcher.nemo-1.mounts" }}

{{- end }}
{{- define "gke-a3high.launcher.nemo-1.beforeLaunch" }}

{{- end }}
{{- define "gke-a3high.launcher.nemo-1.beforeRank" }}
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
{{- define "gke-a3high.launcher.nemo-1.program" }}

{{- end }}
{{/* mlperf-llama2-lora: MLPerf Training benchmark llama2_70b_lora, Llama 2 70B fine-tuned with LoRA, configured by variables */}}
{{- define "gke-a3high.launcher.mlperf-llama2-lora.config" }}
{{- $p := .Values.parallelism }}
{{- $own := get .Values.launchers "mlperf-llama2-lora" }}
{{- $gpus := include "gke-a3high.gpusPerNode" . | int64 }}
{{- $machine := get (include "gke-a3high.machines" . | fromYaml) .Values.machineType }}
# The benchmark multiplies samples of one step and replica by the replicas.
{{- $samples := div (include "gke-a3high.globalBatch" . | int64) (include "gke-a3high.dataParallel" . | int64) }}
DGXSYSTEM: {{ printf "%s_%dx%dx%dxtp%dpp%dcp%d" ($own.system | default .Values.machineType) (int64 .Values.nodes) $gpus $samples (int64 $p.tensor) (int64 $p.pipeline) (int64 $p.context) }}
DGXNNODES: {{ int64 .Values.nodes }}
DGXNGPU: {{ $gpus }}
# First letter of the GPU: h for Hopper, b for Blackwell.
GPU_ARCH: {{ $machine.gpu | trunc 1 }}
TP: {{ int64 $p.tensor }}
PP: {{ int64 $p.pipeline }}
CP: {{ int64 $p.context }}
SP: {{ $p.sequence | ternary 1 0 }}
USE_DISTRIBUTED_OPTIMIZER: {{ $p.distributedOptimizer | ternary "True" "False" | quote }}
MINIBS: {{ $samples }}
MBS: {{ int64 .Values.batch.micro }}
MAX_SEQLEN: {{ int64 .Values.sequenceLength }}
{{- with .Values.optimizer.learningRate }}
LR: {{ toJson (float64 .) }}
{{- end }}
{{- if not (kindIs "invalid" .Values.optimizer.warmupSteps) }}
WARMUP_STEPS: {{ int64 .Values.optimizer.warmupSteps }}
{{- end }}
OVERWRITTEN_NUM_LAYERS: {{ int64 .Values.model.layers }}
MAX_STEPS: {{ int64 .Values.steps }}
FP8: "True"
# From here on the configuration that all systems share (config_common.sh); the user's own wins over it.
VAL_MBS: 1
VAL_CHECK_INTERVAL: 384
LOAD_CKPT: "True"
WARMUP: "True"
WARMUP_TRAIN_STEPS: 5
WARMUP_VALIDATION_STEPS: 5
FP8_AMAX_ALGO: max
FP8_REDUCE_AMAX: "True"
FP8_AMAX_HISTORY: 4
FP8_DPA: 1
NVTE_FP8_DPA_BWD: 1
CG_WEIGHT_CACHING: 0
LORA_A2A: 1
NEMO_LORA_USE_THUNDER_DROPOUT: 1
MC_TP_OVERLAP_AG: "True"
MC_TP_OVERLAP_RS: "True"
MC_TP_OVERLAP_RS_DGRAD: "True"
NVTE_RS_STRIDED_ATOMIC: 2
NVTE_NORM_FWD_USE_CUDNN: 1
NVTE_NORM_BWD_USE_CUDNN: 1
CUBLAS_FORCE_XMMA_KERNEL_INIT: DEVICE
CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT: 0
CUDA_DEVICE_MAX_CONNECTIONS: 1
TORCH_NCCL_AVOID_RECORD_STREAMS: 1
TORCH_NCCL_HIGH_PRIORITY: 1
TORCH_CPP_LOG_LEVEL: ERROR
NCCL_MIN_CTAS: 32
NCCL_MIN_P2P_NCHANNELS: 32
NCCL_NCHANNELS_PER_NET_PEER: 32
NCCL_NVLS_ENABLE: 1
NCCL_GRAPH_REGISTER: 0
NCCL_LOCAL_REGISTER: 0
HF_HUB_OFFLINE: 1
HYDRA_FULL_ERROR: 1
POSSIBLE_USER_WARNINGS: 0
{{- end }}
{{- define "gke-a3high.launcher.mlperf-llama2-lora.args" }}

{{- end }}
{{- define "gke-a3high.launcher.mlperf-llama2-lora.env" }}
{{- $own := get .Values.launchers "mlperf-llama2-lora" }}
{{- $variables := include "gke-a3high.launcher.mlperf-llama2-lora.config" . | fromYaml }}
{{- with get $variables "Error" }}{{ fail (printf "the settings of launcher mlperf-llama2-lora are no YAML: %s" .) }}{{ end }}
{{- range $name, $value := $own.config }}{{ $_ := set $variables $name $value }}{{ end }}
{{- $_ := set $variables "TRIALS" $own.trials }}
{{- $_ := set $variables "FIRST_SEED" $own.seed }}
{{- $_ := set $variables "RULESET" ($own.compliance | ternary $own.ruleset "") }}
{{- range $name, $value := $variables }}
{{- if not (kindIs "invalid" $value) }}
- name: {{ $name }}
  value: {{ kindIs "string" $value | ternary $value (toJson $value) | toJson }}
{{- end }}
{{- end }}
{{- end }}
{{- define "gke-a3high.launcher.mlperf-llama2-lora.mounts" }}
# Where the benchmark looks for its data and its base weights, and writes what it finds.
- mountPath: /data
  from: {{ .Values.data.directory | quote }}
  readOnly: true
- mountPath: /ckpt
  from: {{ .Values.checkpoint.from | default "/data" | quote }}
  readOnly: true
- mountPath: /results
  from: {{ include "gke-a3high.runDirectory" . | quote }}
{{- end }}
{{- define "gke-a3high.launcher.mlperf-llama2-lora.beforeLaunch" }}
mkdir -p "$RUN_DIRECTORY/data_index/train" "$RUN_DIRECTORY/data_index/val"

# Runs this script once more as a trial with a seed and a meeting port of its own, and keeps what it prints.
run_trial() {
  local trial=$1 result=$2 folder status=0
  shift 2
  folder=$(mktemp -d)
  mkfifo "$folder/output"
  tee "$result" <"$folder/output" &
  TRIAL_NUMBER=$trial SEED=$((FIRST_SEED + trial)) MASTER_PORT=$((MASTER_PORT + trial)) \
    bash "$0" "$@" >"$folder/output" 2>&1 &
  trial_process=$!
  trap 'kill -TERM "$trial_process"' TERM
  wait "$trial_process" || status=$?
  # A signal ends the first wait, not the trial.
  if kill -0 "$trial_process" 2>/dev/null; then
    status=0
    wait "$trial_process" || status=$?
  fi
  wait
  rm -r "$folder"
  return "$status"
}

# Checks a trial's log against the rules of MLPerf; only the machine of rank 0 has it.
complies() {
  if [[ $NODE_RANK != 0 || -z $RULESET ]]; then return; fi
  python3 -m mlperf_logging.compliance_checker --usage training --ruleset "$RULESET" \
    --log_output "$RUN_DIRECTORY/compliance_$1.out" "$RUN_DIRECTORY/result_$1.txt"
}

if [[ -z ${TRIAL_NUMBER-} ]]; then
  violations=0
  for ((trial = 0; trial < TRIALS; trial++)); do
    # MLPerf's own name of the log.
    result=$RUN_DIRECTORY/result_$trial.txt
    if ((NODE_RANK)); then result=$RUN_DIRECTORY/trial_$trial.node_$NODE_RANK.txt; fi
    status=0
    run_trial "$trial" "$result" "$@" || status=$?
    if ((status)); then
      echo "chartgen: trial $((trial + 1)) of $TRIALS failed with exit code $status" >&2
      exit "$status"
    fi
    complies "$trial" || violations=$((violations + 1))
  done
  if ((violations)); then
    echo "chartgen: $violations of $TRIALS trials do not comply; see $RUN_DIRECTORY/compliance_*.out" >&2
    exit 1
  fi
  exit
fi
{{- end }}
{{- define "gke-a3high.launcher.mlperf-llama2-lora.beforeRank" }}
# The benchmark reads its ranks from Slurm's variables. SLURM_NTASKS would make Lightning believe in Slurm itself.
export SLURM_LOCALID=$LOCAL_RANK SLURM_PROCID=$RANK SLURM_NODEID=$NODE_RANK
unset SLURM_NTASKS
{{- end }}
{{- define "gke-a3high.launcher.mlperf-llama2-lora.program" }}

{{- end }}
{{/* mlperf-preprocess: Makes the MLPerf benchmark's train.npy and validation.npy from the downloaded GovReport data set */}}
{{- define "gke-a3high.launcher.mlperf-preprocess.config" }}

{{- end }}
{{- define "gke-a3high.launcher.mlperf-preprocess.args" }}
{{- $program := (get .Values.launchers "mlperf-llama2-lora").program | default (get (include "gke-a3high.launchers" . | fromYaml) "mlperf-llama2-lora").program }}
- {{ .Values.data.directory | toJson }}
- {{ printf "%s/scripts" (dir $program) | toJson }}
{{- end }}
{{- define "gke-a3high.launcher.mlperf-preprocess.env" }}

{{- end }}
{{- define "gke-a3high.launcher.mlperf-preprocess.mounts" }}

{{- end }}
{{- define "gke-a3high.launcher.mlperf-preprocess.beforeLaunch" }}

{{- end }}
{{- define "gke-a3high.launcher.mlperf-preprocess.beforeRank" }}

{{- end }}
{{- define "gke-a3high.launcher.mlperf-preprocess.program" }}
#!/usr/bin/env bash
# Arguments: the data set's directory, and the folder of the benchmark's own download_dataset.py, which converts it.
set -euo pipefail
directory=$1
export PYTHONPATH=$2
# The converter reads and writes below one folder; in a folder of its own, no half-written file has a final name.
work=$directory/.preprocess
mkdir -p "$work"
ln -sfn "$directory/data" "$work/data"
for split in train validation; do
  if [[ -s $directory/$split.npy ]]; then
    echo "chartgen: $directory/$split.npy is there"
    continue
  fi
  if [[ ! -s $directory/data/$split-00000-of-00001.parquet ]]; then
    echo "chartgen: $directory/data has no $split split; run the launcher download first" >&2
    exit 1
  fi
  python3 -c 'import sys; from download_dataset import DatasetProcessor; DatasetProcessor(sys.argv[1]).convert_split(sys.argv[2])' \
    "$work" "$split"
  if [[ ! -s $work/$split.npy ]]; then
    echo "chartgen: the converter wrote no $split.npy" >&2
    exit 1
  fi
  mv "$work/$split.npy" "$directory/$split.npy"
  echo "chartgen: wrote $directory/$split.npy"
done
rm -r "$work"
{{- end }}
{{/* download: Fetches data, tokenizers and base weights from https://, hf:// and gs:// addresses into the storage */}}
{{- define "gke-a3high.launcher.download.config" }}

{{- end }}
{{- define "gke-a3high.launcher.download.args" }}
- --parallel
- {{ int64 (get .Values.launchers "download").parallel | toString | toJson }}
{{- with .Values.data.source }}
- --data
- {{ toJson . }}
- {{ toJson $.Values.data.directory }}
{{- end }}
{{- with .Values.tokenizer.source }}
- --tokenizer
- {{ toJson . }}
- {{ toJson $.Values.tokenizer.path }}
- {{ toJson $.Values.tokenizer.kind }}
{{- end }}
{{- with .Values.checkpoint.source }}
- --checkpoint
- {{ toJson . }}
- {{ toJson $.Values.checkpoint.from }}
{{- end }}
{{- end }}
{{- define "gke-a3high.launcher.download.env" }}

{{- end }}
{{- define "gke-a3high.launcher.download.mounts" }}

{{- end }}
{{- define "gke-a3high.launcher.download.beforeLaunch" }}

{{- end }}
{{- define "gke-a3high.launcher.download.beforeRank" }}

{{- end }}
{{- define "gke-a3high.launcher.download.program" }}
"""Fetches data, a tokenizer and base weights: what is complete stays, what broke off goes on.

Needs only Python's standard library. Addresses:
    https://host/file                       a file
    https://host/folder/                    a tokenizer's folder, with its standard file names
    hf://[datasets/]org/name[@rev][/path]   a repository, a folder of it (the path ends in /), or a file
    gs://bucket/path                        a file, or all below a path that ends in /
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import lzma
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urljoin, urlsplit

from places import PART, clashes, fault, unpacked
from web import FetchError, ask, follows, public, same_host

ATTEMPTS = 6
CHUNK = 1 << 20
PAGE_BYTES = 64 << 20  # the hub lists 1,000 files in a page of less than 1 MiB
SHOWN = 5  # problems in one message
# Kind -> files of the tokenizer's directory: another name that repositories use, and whether all tokenizers have it.
TOKENIZERS = {
    "gpt2": {"gpt2-vocab.json": ("vocab.json", True), "gpt2-merges.txt": ("merges.txt", True)},
    "sentencepiece": {"tokenizer.model": ("", True)},
    "huggingface": {
        "tokenizer_config.json": ("", True),
        **dict.fromkeys(("tokenizer.json", "tokenizer.model", "special_tokens_map.json", "config.json"), ("", False)),
    },
}
HINTS = {401: "set secretEnv.HF_TOKEN, or renew the token", 403: "ask for access with the account of the token"}


@dataclass(frozen=True)
class Item:
    """One file: its address, its path below its directory, and its size where a listing tells."""

    url: str
    path: str
    size: int | None = None
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    needed: bool = True


def say(text: str) -> None:
    """Write a line to the pod's log. Servers have a hand in it, so what moves a terminal's cursor is spelled out."""
    shown = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
    print(f"chartgen: {shown}", flush=True)  # noqa: T201  the log is what the program prints


def listing(source: str, url: str, headers: dict[str, str]) -> tuple[Any, Any]:
    """Read one page of a listing, and the headers that came with it."""
    with ask(url, headers) as answer:
        text = answer.read(PAGE_BYTES + 1)
        if len(text) > PAGE_BYTES:
            raise FetchError(f"{source}: a page of its listing is larger than {PAGE_BYTES >> 20} MiB")
        return json.loads(text), answer.headers


def hub(source: str) -> Iterator[Item]:
    """List what a Hugging Face address names."""
    match = re.fullmatch(r"hf://(datasets/)?([^/@]+/[^/@]+)(?:@([^/]+))?(?:/(.*))?", source)
    if not match:
        raise FetchError(f"{source}: must be hf://[datasets/]org/name[@revision][/path]")
    kind, name, revision, path = match[1] or "", match[2], quote(match[3] or "main"), match[4] or ""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    token = os.environ.get("HF_TOKEN", "").strip()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    files = f"{endpoint}/{kind}{name}/resolve/{revision}/"
    if path and not path.endswith("/"):
        yield Item(files + quote(path), Path(path).name, None, headers)
        return
    page = f"{endpoint}/api/{kind or 'models/'}{name}/tree/{revision}/{quote(path)}".rstrip("/") + "?recursive=true"
    seen: set[str] = set()
    while page not in seen:
        seen.add(page)
        found, answered = listing(source, page, headers if same_host(page, endpoint) else {})
        for entry in found:
            if entry["type"] == "file":
                yield Item(files + quote(entry["path"]), entry["path"][len(path) :], size(entry), headers)
        link = re.search(r'<([^<>]+)>; *rel="next"', answered.get("Link", ""))
        if not link:
            return
        follows(page, following := urljoin(page, link[1]))
        page = following
    raise FetchError(f"{source}: its listing goes round in circles")


def bucket(source: str) -> Iterator[Item]:
    """List what a Cloud Storage address names, with the token of the pod's account; public buckets need none."""
    name, _, path = source.removeprefix("gs://").partition("/")
    endpoint = os.environ.get("STORAGE_EMULATOR_HOST", "https://storage.googleapis.com").rstrip("/")
    objects = f"{endpoint if '://' in endpoint else 'http://' + endpoint}/storage/v1/b/{name}/o"
    account = f"http://{os.environ.get('GCE_METADATA_HOST', 'metadata.google.internal')}/computeMetadata/v1/instance"
    try:
        with ask(f"{account}/service-accounts/default/token", {"Metadata-flavor": "Google"}, timeout=3) as answer:
            headers = {"Authorization": f"Bearer {json.load(answer)['access_token']}"}
    except (OSError, ValueError, KeyError):
        headers = {}
    if path and not path.endswith("/"):
        yield Item(f"{objects}/{quote(path, safe='')}?alt=media", Path(path).name, None, headers)
        return
    page, token = f"{objects}?prefix={quote(path, safe='')}", ""
    seen: set[str] = set()
    while token not in seen:
        seen.add(token)
        found, _ = listing(source, page + token, headers)
        for entry in (entry for entry in found.get("items", []) if not entry["name"].endswith("/")):
            url = f"{objects}/{quote(entry['name'], safe='')}?alt=media"
            yield Item(url, entry["name"][len(path) :], size(entry), headers)
        if "nextPageToken" not in found:
            return
        token = f"&pageToken={quote(found['nextPageToken'])}"
    raise FetchError(f"{source}: its listing goes round in circles")


def size(entry: dict[str, Any]) -> int:
    """Return the size that a listing states."""
    if (stated := int(entry["size"])) < 0:
        raise ValueError(f"size {stated}")
    return stated


def listed(source: str) -> list[Item]:
    """List what an address names.

    Raises:
        FetchError: What the server answers is no listing.
    """
    if source.startswith(("hf://", "gs://")):
        try:
            return list((hub if source.startswith("hf://") else bucket)(source))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, HTTPException) as error:
            raise FetchError(f"{source}: the server answers with no listing ({error!r:.100})") from None
    return [Item(source, Path(urlsplit(source).path).name)]


def tokenizer(source: str, kind: str) -> list[Item]:
    """List the files of a tokenizer, under their standard names."""
    wanted = TOKENIZERS[kind].items()
    if source.startswith("http") and source.endswith("/"):
        return [Item(source + name, name, needed=needed) for name, (_, needed) in wanted]
    found = {item.path: item for item in listed(source)}
    items = {name: found.get(name) or found.get(other) for name, (other, _) in wanted}
    if lacking := [name for name, (_, needed) in wanted if needed and not items[name]]:
        raise FetchError(f"{source}: has no {' and no '.join(lacking)}; is tokenizer.kind right?")
    return [replace(item, path=name) for name, item in items.items() if item]


def planned(work: list[tuple[Item, Path]]) -> list[tuple[Item, Path]]:
    """Return what is fetched to which path, each once.

    Raises:
        FetchError: A name that is not taken; nothing is fetched then, for the source is not what it should be.
    """
    problems = [f"{public(item.url)}: {why}" for item, folder in work if (why := fault(item.path, folder))]
    found = [(item, folder / item.path) for item, folder in work]
    plan = {(item.url, target): (item, target) for item, target in found}
    problems = problems or list(clashes(target for _, target in plan.values()))
    if problems:
        more = [f"and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
        raise FetchError("; ".join([*problems[:SHOWN], *more]))
    return list(plan.values())


def fetch(item: Item, target: Path) -> None:
    """Fetch one file and unpack it, unless that is done; `.part` files are what is not complete."""
    result = unpacked(target)
    if result.is_file() and (result != target or item.size in (None, result.stat().st_size)):
        return say(f"{result} is there")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + PART)
    if result == target or not target.is_file():
        try:
            attempts(item, part)
        except HTTPError as error:
            if error.code != 404 or item.needed:
                raise
            return None
        part.replace(target)
    if result != target:
        unpack(target, result)
    return say(f"{result} has {result.stat().st_size} bytes")


def attempts(item: Item, part: Path) -> None:
    """Receive one file, in as many attempts as it takes."""
    for attempt in range(ATTEMPTS):
        try:
            return receive(item, part)
        except HTTPError as error:
            if error.code == 416:  # there is no more of it than is here: another file of this name
                part.unlink(missing_ok=True)
            elif error.code not in (408, 429) and error.code < 500:
                raise
            reason: object = error
        except (OSError, HTTPException) as error:
            reason = error
        say(f"{public(item.url)}: attempt {attempt + 1} of {ATTEMPTS}: {reason}")
        time.sleep(2**attempt)
    raise FetchError(f"{public(item.url)}: {ATTEMPTS} attempts failed")


def receive(item: Item, part: Path) -> None:
    """Fetch what is missing of one file, and check its size."""
    have = part.stat().st_size if part.is_file() else 0
    with ask(item.url, {**item.headers, **({"Range": f"bytes={have}-"} if have else {})}) as answer:
        have = continued(answer, part, have)
        length = answer.length  # None where the server states none that is a number
        total = item.size if length is None else have + length
        if item.size not in (None, total):
            part.unlink(missing_ok=True)
            raise FetchError(f"{public(item.url)}: has {total} bytes, its listing says {item.size}")
        with part.open("ab" if have else "wb") as file:
            while data := answer.read(CHUNK):
                if total is not None and file.tell() + len(data) > total:
                    part.unlink()
                    raise FetchError(f"{public(item.url)}: sends more than the {total} bytes that its listing says")
                if file.tell() >> 30 < (file.tell() + file.write(data)) >> 30:
                    say(f"{part}: {file.tell() >> 20} of {(total or 0) >> 20} MiB")
    if total not in (None, part.stat().st_size):
        raise ConnectionError(f"broke off after {part.stat().st_size} of {total} bytes")


def continued(answer: Any, part: Path, have: int) -> int:
    """Return how many bytes of what is here stay: all, where the server goes on exactly behind them.

    Raises:
        ConnectionError: It sends another part than it was asked for; the next attempt begins anew.
    """
    if answer.status != 206:
        return 0
    if not re.match(rf"bytes {have}-", answer.headers.get("Content-Range", "")):
        part.unlink(missing_ok=True)
        raise ConnectionError(f"the server sends another part than from byte {have} on")
    return have


def unpack(archive: Path, result: Path) -> None:
    """Unpack a file beside itself, and remove the archive."""
    modules = {".xz": [lzma], ".gz": [gzip]}.get(archive.suffix) or [
        importlib.import_module(name)
        for name in ("compression.zstd", "zstandard")
        if importlib.util.find_spec(name.partition(".")[0])
    ]
    if not modules:
        raise FetchError(f"{archive}: only Python 3.14 or the module zstandard unpack it; set launchers.download.image")
    part = result.with_name(result.name + PART)
    try:
        with modules[0].open(archive, "rb") as source, part.open("wb") as file:
            shutil.copyfileobj(source, file, CHUNK)
    except (OSError, EOFError, lzma.LZMAError) as error:
        archive.unlink()
        raise FetchError(f"{archive}: cannot be unpacked ({error}) and is gone; start again") from None
    part.replace(result)
    archive.unlink()


def told(problem: BaseException) -> str:
    """Say what went wrong and what to do, without the signatures that addresses of stores carry."""
    if isinstance(problem, HTTPError):
        hint = HINTS.get(problem.code, "check the address")
        return f"{public(str(problem.url))}: {problem.code} {problem.reason}; {hint}"
    return str(problem)


def main() -> None:
    """Fetch what the arguments name; any failure is an exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--data", nargs=2, default=[])
    parser.add_argument("--tokenizer", nargs=3, default=[])
    parser.add_argument("--checkpoint", nargs=2, default=[])
    given = parser.parse_args()
    problems: list[BaseException] = []
    try:
        work = [(item, Path(pair[1])) for pair in (given.data, given.checkpoint) if pair for item in listed(pair[0])]
        if given.tokenizer:
            work += [(item, Path(given.tokenizer[1])) for item in tokenizer(given.tokenizer[0], given.tokenizer[2])]
        plan = planned(work)
        with ThreadPoolExecutor(given.parallel) as pool:
            done = [pool.submit(fetch, item, target) for item, target in plan]
        problems = [problem for future in done if (problem := future.exception())]
    except (FetchError, OSError) as error:
        problems = [error]
    for problem in problems:
        say(told(problem))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
{{- end }}
{{- define "gke-a3high.launcher.download.places.py" }}
"""Where files go: below their directory, each at a place of its own, whatever names a stranger gave them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKED = (".xz", ".gz", ".zst")
LONGEST = 255  # bytes of a file's name, on ext4, XFS, NFS and Lustre alike
PART = ".part"  # a file that is not complete yet


def unpacked(target: Path) -> Path:
    """Return the file that a fetched one becomes."""
    return target.with_suffix("") if target.suffix in PACKED else target


def written(target: Path) -> list[Path]:
    """Return every path that is written for one file: itself, what it is unpacked to, and what is incomplete."""
    return [path.with_name(path.name + end) for path in dict.fromkeys((target, unpacked(target))) for end in ("", PART)]


def fault(name: str, directory: Path) -> str:
    """Return why a name is not taken, or nothing. Names come from listings that strangers write.

    Args:
        name: Path below the directory, parts joined by `/`.
        directory: Where the values want the files.
    """
    parts = name.split("/")
    if name.startswith("/") or ".." in parts:
        return f"its name leads out of {directory}"
    if "" in parts or "." in parts:
        return "its name has an empty part"
    if not name.isprintable():
        return "its name has control characters"
    # encoded as Linux keeps names: what is no UTF-8 stays what it is
    if any(len(os.fsencode(part)) + len(PART) > LONGEST for part in parts if _encodes(part)) or not _encodes(name):
        return f"a part of its name is longer than {LONGEST - len(PART)} bytes, or is no text"
    return _on_disk(directory / name, directory)


def clashes(targets: Iterable[Path]) -> Iterator[str]:
    """Report files that would overwrite each other, or be file and folder at once.

    Names that differ only in case count as the same: not every storage can tell them apart.
    """
    owners: dict[str, Path] = {}
    folders: dict[str, Path] = {}
    for target in targets:
        for path in written(target):
            key = str(path).casefold()
            other = owners.setdefault(key, target)
            if other != target:
                yield f"{other} and {target} would overwrite each other"
        for folder in target.parents:
            key = str(folder).casefold()
            if str(folders.setdefault(key, folder)) != str(folder):
                yield f"the folders {folders[key]} and {folder} differ only in case"
    for key in sorted(owners.keys() & folders.keys()):
        yield f"{owners[key]} would be a file and a folder"


def _encodes(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeError:
        return False
    return True


def _on_disk(target: Path, directory: Path) -> str:
    """Return what an earlier program left at a place that makes it another place."""
    try:
        root = directory.resolve()
        for path in written(target):
            if not path.resolve().is_relative_to(root):
                return f"a link leads from {path} out of {directory}"
            if path.exists() and not path.is_file():
                return f"{path} is there, and is no file"
    except (OSError, RuntimeError) as error:  # a loop of links, for one
        return str(error)
    return ""
{{- end }}
{{- define "gke-a3high.launcher.download.web.py" }}
"""Requests over http:// and https://, and no other scheme, whose secrets stay with the host that they are for."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

SCHEMES = ("http", "https")


class FetchError(Exception):
    """What the user is told, in one line. Another attempt would end the same way."""


class SameHost(HTTPRedirectHandler):
    """Keeps a token on its scheme and host: hubs redirect to stores, which must not see it."""

    def redirect_request(self, req: Request, *rest: Any) -> Request | None:
        """Pass the headers that urllib does not redirect on to the same scheme and host only."""
        new = super().redirect_request(req, *rest)
        if new:
            follows(req.full_url, new.full_url)
            if same_host(req.full_url, new.full_url):
                new.unredirected_hdrs.update(req.unredirected_hdrs)
        return new


def same_host(one: str, other: str) -> bool:
    """Return whether two addresses have the same scheme, host and port."""
    return urlsplit(one)[:2] == urlsplit(other)[:2]


def follows(url: str, following: str) -> None:
    """Check that an address that a server names may follow its own.

    Raises:
        FetchError: It is no web address, or gives up encryption.
    """
    scheme = urlsplit(following).scheme
    if scheme not in SCHEMES or (scheme == "http" and urlsplit(url).scheme == "https"):
        raise FetchError(f"{public(url)}: leads to {public(following)}, which is refused: only https:// may follow")


def public(url: str) -> str:
    """Return an address without what is secret in it: accounts, and the signatures of stores."""
    scheme, _, rest = url.partition("?")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}" if rest else scheme


def ask(url: str, headers: dict[str, str], timeout: float = 60) -> Any:
    """Open an address; the headers stay on its scheme and host.

    Raises:
        OSError: The server cannot be reached, or answers with an error.
        FetchError: It redirects to where nobody may be sent.
    """
    if urlsplit(url).scheme not in SCHEMES:
        raise FetchError(f"{public(url)}: is no http:// or https:// address")
    request = Request(url)  # noqa: S310  checked in the line above
    request.unredirected_hdrs.update(headers)
    opener = OpenerDirector()  # urllib's usual one also opens file:, ftp: and data:
    handlers = (ProxyHandler, HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, SameHost, HTTPErrorProcessor)
    for handler in (*handlers, UnknownHandler):
        opener.add_handler(handler())
    return opener.open(request, timeout=timeout)
{{- end }}
{{/* megatron-preprocess: Tokenizes one JSON Lines file into the data set that training reads, with Megatron-LM's own tool */}}
{{- define "gke-a3high.launcher.megatron-preprocess.config" }}

{{- end }}
{{- define "gke-a3high.launcher.megatron-preprocess.args" }}
{{- $trainer := include "gke-a3high.launcher.megatron-lm.config" . | fromYaml }}
{{- $program := (get .Values.launchers "megatron-lm").program | default (get (include "gke-a3high.launchers" . | fromYaml) "megatron-lm").program }}
# Where the data set goes, the tool, and the tool's own arguments; its tokenizer is the one that training uses.
- {{ include "gke-a3high.dataNames" . | fromYamlArray | first | default "" | toJson }}
- {{ printf "%s/tools/preprocess_data.py" (dir $program) | toJson }}
- --input
- {{ include "gke-a3high.dataInput" . | toJson }}
{{- range $option := list "tokenizer-type" "tokenizer-model" "vocab-file" "merge-file" }}
{{- with get $trainer $option }}
- --{{ $option }}
- {{ toJson . }}
{{- end }}
{{- end }}
- --append-eod
- --workers
- {{ int64 (get .Values.launchers "megatron-preprocess").workers | toString | toJson }}
{{- end }}
{{- define "gke-a3high.launcher.megatron-preprocess.env" }}

{{- end }}
{{- define "gke-a3high.launcher.megatron-preprocess.mounts" }}

{{- end }}
{{- define "gke-a3high.launcher.megatron-preprocess.beforeLaunch" }}

{{- end }}
{{- define "gke-a3high.launcher.megatron-preprocess.beforeRank" }}

{{- end }}
{{- define "gke-a3high.launcher.megatron-preprocess.program" }}
#!/usr/bin/env bash
# Arguments: the data set's name with its directory, the tool, the tool's arguments.
set -euo pipefail
name=$1 tool=$2
shift 2
result=${name}_text_document
if [[ -s $result.bin && -s $result.idx ]]; then
  echo "chartgen: $result is there"
  exit
fi
python3 -u "$tool" "$@" --output-prefix "$name.part"
# The tool ends well also when its workers have failed, so what it wrote decides; the index comes last.
for kind in bin idx; do
  if [[ ! -s ${name}.part_text_document.$kind ]]; then
    echo "chartgen: $tool wrote no $result.$kind" >&2
    exit 1
  fi
done
for kind in bin idx; do mv "$name.part_text_document.$kind" "$result.$kind"; done
echo "chartgen: wrote $result"
{{- end }}
{{/* pile-dataprep: Fetches numbered files of the Pile, unpacks and tokenizes them into the data sets that training reads */}}
{{- define "gke-a3high.launcher.pile-dataprep.config" }}

{{- end }}
{{- define "gke-a3high.launcher.pile-dataprep.args" }}
{{- $tokenizer := (include "gke-a3high.launcher.nemo-1.config" . | fromYaml).model.tokenizer }}
# NeMo's tool and its arguments; its tokenizer is the one that training uses.
- /opt/NeMo/scripts/nlp_language_modeling/preprocess_data_for_megatron.py
{{- range $option, $key := dict "tokenizer-library" "library" "tokenizer-type" "type" "tokenizer-model" "model" "vocab-file" "vocab_file" "merge-file" "merge_file" }}
{{- with get $tokenizer $key }}
- --{{ $option }}
- {{ toJson . }}
{{- end }}
{{- end }}
- --dataset-impl
- mmap
- --append-eod
{{- end }}
{{- define "gke-a3high.launcher.pile-dataprep.env" }}
# Every rank takes its share of these; training reads the same list.
- name: DATA_NAMES
  value: {{ include "gke-a3high.dataNames" . | fromYamlArray | join "\n" | quote }}
- name: DATA_SOURCE
  value: {{ .Values.data.source | default "https://huggingface.co/datasets/monology/pile-uncopyrighted/resolve/main/train/" | quote }}
# The tokenizer is on the disk.
- name: HF_HUB_OFFLINE
  value: "1"
{{- end }}
{{- define "gke-a3high.launcher.pile-dataprep.mounts" }}

{{- end }}
{{- define "gke-a3high.launcher.pile-dataprep.beforeLaunch" }}

{{- end }}
{{- define "gke-a3high.launcher.pile-dataprep.beforeRank" }}

{{- end }}
{{- define "gke-a3high.launcher.pile-dataprep.program" }}
#!/usr/bin/env bash
# Arguments: the tool and its arguments. This rank handles the files whose number leaves RANK when divided by WORLD_SIZE.
set -euo pipefail
shopt -s inherit_errexit

say() { echo "chartgen: rank $RANK: $*"; }

# Fetches into a file, from where an earlier attempt stopped. The token comes through a pipe: no list of processes has it.
fetch() {
  local attempt code=0
  for ((attempt = 0; attempt < 5; attempt++)); do
    code=0
    curl --fail --location --no-progress-meter --retry 8 --retry-connrefused --continue-at - --output "$2" \
      --config <(if [[ -n ${HF_TOKEN-} ]]; then echo "header = \"Authorization: Bearer $HF_TOKEN\""; fi) "$1" || code=$?
    # curl does not repeat transfers that broke off (18, 56) by itself.
    if [[ $code != 18 && $code != 56 ]]; then break; fi
  done
  # The server has no such file, or no more of it than is here.
  if [[ $code == 22 ]]; then rm -f "$2"; fi
  return "$code"
}

unpack() {
  if command -v zstd >/dev/null; then
    zstd --quiet --decompress --stdout "$1"
  else
    python3 -c 'import sys, zstandard
zstandard.ZstdDecompressor().copy_stream(open(sys.argv[1], "rb"), sys.stdout.buffer)' "$1"
  fi
}

# Takes the number of a file as its address has it, and the name of its data set.
prepare() {
  local packed=$2.jsonl.zst text=$2.jsonl part=$2.part suffix
  if [[ -s $2_text_document.bin && -s $2_text_document.idx ]]; then
    rm -f "$packed" "$text"  # an attempt may have ended before it removed them
    say "$2 is there"
    return
  fi
  if [[ ! -s $text ]]; then
    if [[ ! -s $packed ]]; then
      say "fetching $DATA_SOURCE$1.jsonl.zst"
      fetch "$DATA_SOURCE$1.jsonl.zst" "$packed.part"
      mv "$packed.part" "$packed"
    fi
    say "unpacking $packed"
    unpack "$packed" >"$text.part"
    mv "$text.part" "$text"
  fi
  say "tokenizing $text"
  python3 -u "${tool[@]}" --input "$text" --output-prefix "$part" --workers "$processes"
  for suffix in _text_document.bin _text_document.idx; do
    [[ -s $part$suffix ]] || { say "the tool wrote no $2$suffix" >&2 && exit 1; }
    mv "$part$suffix" "$2$suffix"
  done
  rm -f "$packed" "$text"
  say "wrote $2"
}

tool=("$@")
processes=$(($(nproc) / WORKERS))
if ((processes < 1)); then processes=1; fi
mapfile -t names <<<"$DATA_NAMES"
mkdir -p "${names[0]%/*}"
for ((number = RANK; number < ${#names[@]}; number += WORLD_SIZE)); do
  prepare "$(printf '%02d' "$number")" "${names[number]}"
done
{{- end }}
{{/* nccl-test: Measures NCCL's collectives between the GPUs of a run, or finds the machine whose pairs are slow */}}
{{- define "gke-a3high.launcher.nccl-test.config" }}

{{- end }}
{{- define "gke-a3high.launcher.nccl-test.args" }}
{{- $own := get .Values.launchers "nccl-test" }}
{{- $floors := dict }}
{{- $machine := get (include "gke-a3high.machines" . | fromYaml) .Values.machineType }}
{{- $whole := eq (include "gke-a3high.gpusPerNode" . | int64) (int64 $machine.gpus) }}
{{- if and $whole (gt (int64 .Values.nodes) 1) (eq $own.mode "sweep") }}
{{- if eq .Values.machineType "a3-highgpu-8g" }}
{{- $_ := set $floors "all_gather" (list "63.8" "512Mi" "9/10 of 70.9 measured: GoogleCloudPlatform/cluster-toolkit @ 1047080, examples/gke-a3-highgpu/multi-node-test-plan.md") }}
{{- end }}
{{- end }}
{{- range $operation, $busbw := $own.minBusbw }}
{{- $_ := set $floors $operation (list (toString $busbw) "0" "launchers.nccl-test.minBusbw") }}
{{- end }}
- --mode
- {{ $own.mode }}
- --operations
{{- range $own.operations }}
- {{ . }}
{{- end }}
- --sizes
- {{ toJson $own.minBytes }}
- {{ toJson $own.maxBytes }}
- --factor
- {{ int64 $own.factor | toString | toJson }}
- --iterations
- {{ int64 $own.iterations | toString | toJson }}
- --warmup
- {{ int64 $own.warmup | toString | toJson }}
- --type
- {{ $own.dataType }}
- --slow-below
- {{ int64 $own.slowBelow | toString | toJson }}
{{- range $operation := $own.operations }}
{{- with get $floors $operation }}
- --floor
- {{ $operation }}
{{- range . }}
- {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}
{{- with $own.binary }}
- --binary
- {{ toJson . }}
{{- end }}
{{- end }}
{{- define "gke-a3high.launcher.nccl-test.env" }}
# The machine's own name, by which a slow one is told.
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- end }}
{{- define "gke-a3high.launcher.nccl-test.mounts" }}

{{- end }}
{{- define "gke-a3high.launcher.nccl-test.beforeLaunch" }}

{{- end }}
{{- define "gke-a3high.launcher.nccl-test.beforeRank" }}

{{- end }}
{{- define "gke-a3high.launcher.nccl-test.program" }}
"""Measures NCCL between the GPUs of a run, in the columns of nccl-tests, or finds the machine whose pairs are slow.

Needs PyTorch, and torchrun or whoever else tells each process its rank; or a program of nccl-tests, under mpirun.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from collectives import COLLECTIVES, EXACT, Bench, Group, UnsupportedError
from table import HEADER, Row, bytes_of, read, size_of, written
from tournament import Pair, levels, report, rounds

# Two buffers, and a tenth for what NCCL and the comparison need.
SHARE_OF_MEMORY = 0.45
# What Kubernetes keeps of a container that failed, and `chartgen status` quotes.
LAST_WORDS = Path("/dev/termination-log")
PREFIX = "chartgen: nccl-test: "


class Floor(NamedTuple):
    """Bus bandwidth in GB/s that a collective must reach with messages of so many bytes or more, and who says so."""

    operation: str
    busbw: float
    bytes: int
    source: str


def say(text: str) -> None:
    """Write a line to the pod's log."""
    print(text, flush=True)  # noqa: T201  the log is what the program prints


def arguments() -> argparse.Namespace:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=("sweep", "pairs"), default="sweep")
    parser.add_argument("--operations", nargs="+", choices=COLLECTIVES, default=list(COLLECTIVES))
    parser.add_argument("--sizes", nargs=2, type=bytes_of, metavar=("FROM", "TO"), default=[8, 16 << 30])
    parser.add_argument("--factor", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--type", choices=EXACT, default="float")
    parser.add_argument(
        "--floor", nargs=4, action="append", metavar=("COLLECTIVE", "GB/S", "FROM", "SOURCE"), default=[]
    )
    parser.add_argument("--slow-below", type=int, default=80)
    parser.add_argument("--binary")
    parser.add_argument("--backend", choices=("nccl", "gloo"), default="nccl")
    given = parser.parse_args()
    given.floor = [Floor(name, float(busbw), bytes_of(least), source) for name, busbw, least, source in given.floor]
    return given


def sizes(given: argparse.Namespace) -> Iterator[int]:
    """Give the sizes from the smallest to the largest."""
    size, largest = given.sizes
    while size <= largest:
        yield size
        size *= given.factor


class Record:
    """What rank 0 keeps: the rows, in memory and as lines of JSON in the run's directory."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._path = Path(os.environ["RUN_DIRECTORY"]) / "nccl-test.jsonl"
        self._path.write_text("", encoding="utf-8")

    def note(self, facts: dict[str, Any]) -> None:
        """Write a line of JSON."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(facts) + "\n")

    def add(self, rows: Iterable[Row]) -> None:
        """Keep rows."""
        for row in rows:
            self.rows.append(row)
            self.note(asdict(row))

    def judged(self, floor: Floor) -> list[Row]:
        """Give the rows that a floor is for."""
        return [row for row in self.rows if row.operation == floor.operation and row.bytes >= floor.bytes]

    def problems(self, floors: list[Floor]) -> Iterator[str]:
        """Say what is wrong, and which floor was missed by how much."""
        for operation in dict.fromkeys(row.operation for row in self.rows):
            bad = [row for row in self.rows if row.operation == operation and row.wrong]
            if bad:
                count = f"{bad[0].wrong} elements" if bad[0].wrong > 1 else "an element"
                yield f"{operation} gives wrong results: {count} of a message of {size_of(bad[0].bytes)}"
        for floor in floors:
            best = max(self.judged(floor), key=lambda row: row.busbw, default=None)
            if best and best.busbw < floor.busbw:
                told = f"{floor.operation} reaches {best.busbw:.2f} GB/s at {size_of(best.bytes)}"
                missing = f"{1 - best.busbw / floor.busbw:.1%} below the floor of {floor.busbw:g} GB/s"
                yield f"{told}, {missing} ({floor.source})"


def verdict(record: Record, floors: list[Floor]) -> list[str]:
    """Give what there is to complain about; a floor for larger messages than were measured is only mentioned."""
    for floor in floors:
        if not record.judged(floor):
            told = f"the floor of {floor.busbw:g} GB/s is for messages of {size_of(floor.bytes)} and more"
            say(f"# {floor.operation}: {told}, which were not measured")
    return [f"{PREFIX}{each}" for each in record.problems(floors)]


def sweep(bench: Bench, given: argparse.Namespace, world: Group, record: Record | None) -> list[str]:
    """Measure all sizes of all collectives on all GPUs; give what rank 0 has to complain about."""
    missing = []
    for operation in given.operations:
        if record:
            say(f"# {operation}\n{HEADER}")
        try:
            for size in sizes(given):
                rows = bench.measure(operation, size, world)
                if record and rows:
                    say(written(rows))
                    record.add(rows)
        except UnsupportedError as error:
            missing.append(f"{PREFIX}{error}")
    return missing + verdict(record, given.floor) if record else []


def pairs(bench: Bench, given: argparse.Namespace, world: Group, record: Record | None) -> list[str]:
    """Measure each pair of machines, as many at a time as there are; give the machines that are slow."""
    if "use_local_synchronization" not in signature(bench.dist.new_group).parameters:
        raise UnsupportedError(f"mode pairs needs PyTorch 2.1 or newer, the image has {bench.torch.__version__}")
    local = int(os.environ["LOCAL_WORLD_SIZE"])
    machines, own = world.size // local, world.rank // local
    names: list[Any] = [None] * world.size
    bench.dist.all_gather_object(names, os.environ["NODE_NAME"])
    reached: dict[Pair, float] = {}
    for meeting in rounds(machines):
        mine = next((pair for pair in meeting if own in pair), None)
        figures = dict.fromkeys(meeting, 0.0)
        if mine:
            ranks = [machine * local + each for machine in mine for each in range(local)]
            # only the two machines make it, so that rounds of many pairs do not wait for each other
            handle = bench.dist.new_group(ranks, use_local_synchronization=True)
            group = Group(len(ranks), ranks.index(world.rank), handle)
            row = bench.measure(given.operations[0], given.sizes[1], group)[0]
            bench.dist.destroy_process_group(handle)
            # all its ranks tell the same; what arrives wrong has reached nothing
            figures[mine] = 0 if row.wrong else row.busbw / group.size
        reached |= zip(meeting, bench.total(list(figures.values()), world), strict=True)
    if not record:
        return []
    found = levels(reached, machines)
    for (one, other), busbw in reached.items():
        record.note({"pair": [names[one * local], names[other * local]], "busbw": busbw})
    table, slow = report(names[::local], found, given.slow_below)
    say("\n".join(table))
    return slow


def measured(given: argparse.Namespace, rank: int) -> list[str]:
    """Measure with PyTorch."""
    torch: Any = import_module("torch")
    dist, device = torch.distributed, torch.device("cpu")
    if given.backend == "nccl":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group(given.backend)
    world, bench = Group(dist.get_world_size(), rank), Bench(torch, given, device)
    record = None if rank else Record()
    bench.total([0], world)  # makes the communicator, which takes memory too
    if given.backend == "nccl":
        afford(bench, given)
    if record:
        record.note(told := facts(torch, given, world))
        say("# " + ", ".join(f"{name} {value}" for name, value in told.items()))
    bench.hold(given.sizes[1])
    problems = (pairs if given.mode == "pairs" else sweep)(bench, given, world, record)
    dist.destroy_process_group()
    return problems


def afford(bench: Bench, given: argparse.Namespace) -> None:
    """Lower the largest size to one of which each GPU holds two messages."""
    free = bench.torch.tensor(bench.torch.cuda.mem_get_info()[0], device=bench.device)
    bench.dist.all_reduce(free, bench.dist.ReduceOp.MIN)
    most = SHARE_OF_MEMORY * int(free)
    if given.sizes[1] > most:
        given.sizes[1] = max(size for size in sizes(given) if size <= most)


def facts(torch: Any, given: argparse.Namespace, world: Group) -> dict[str, Any]:
    """Give what the measurements depend on."""
    found: dict[str, Any] = {"ranks": world.size, "machines": world.size // int(os.environ["LOCAL_WORLD_SIZE"])}
    found |= {"backend": given.backend, "torch": torch.__version__}
    if given.backend == "nccl":
        found |= {"nccl": ".".join(map(str, torch.cuda.nccl.version())), "gpu": torch.cuda.get_device_name()}
    return {**found, "largest": size_of(given.sizes[1])}


def classic(given: argparse.Namespace, rank: int) -> list[str]:
    """Let a program of nccl-tests measure, which meets the others through MPI; only its first rank prints."""
    low, high = given.sizes
    flags = {"-b": low, "-e": high, "-f": given.factor, "-n": given.iterations, "-w": given.warmup, "-d": given.type}
    argv = [given.binary, *(str(word) for pair in flags.items() for word in pair), "-g", "1", "-c", "1"]
    if rank:
        os.execv(given.binary, argv)  # noqa: S606  what the values name, without a shell
    record = Record()
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        for line in process.stdout or ():
            say(line.rstrip("\n"))
            record.add(read(line, given.operations[0]))
    if process.returncode:
        sys.exit(f"{PREFIX}{given.binary} ended with exit code {process.returncode}")
    return verdict(record, given.floor)


def conclude(problems: list[str]) -> None:
    """End: what is slow or wrong is told last, and is exit code 1 of the rank that tells it."""
    if problems:
        say("\n".join(problems))
    if problems and LAST_WORDS.exists():
        LAST_WORDS.write_text("\n".join(problems), encoding="utf-8")
    sys.exit(bool(problems))


def main() -> None:
    """Measure and conclude."""
    given, rank = arguments(), int(os.environ["RANK"])
    try:
        problems = (classic if given.binary else measured)(given, rank)
    except UnsupportedError as error:
        problems = [f"{PREFIX}{error}"]
    conclude(problems)


if __name__ == "__main__":
    main()
{{- end }}
{{- define "gke-a3high.launcher.nccl-test.collectives.py" }}
"""The collectives, as PyTorch does them: how each is timed, and whether what arrives is right.

Sizes, counts and bandwidths are those of nccl-tests (doc/PERFORMANCE.md, src/*.cu).
"""

from __future__ import annotations

import re
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from table import Row

# What is sent repeats after this many numbers: a prime, so that no block of a message looks like its neighbour.
PERIOD = 251
# Elements that are compared at a time, in rows of PERIOD.
ROWS = 1 << 18
# Whole numbers up to here are exact in each number format.
EXACT = {"float": 1 << 24, "half": 1 << 11, "bfloat16": 1 << 8}
# What gloo says of a collective and of a number format that it does not know (ProcessGroupGloo.cpp, ProcessGroup.hpp).
_UNKNOWN = re.compile(r"(no|not) support|[Ii]nvalid scalar type")


class UnsupportedError(Exception):
    """What the image's PyTorch cannot measure."""


@dataclass(frozen=True)
class Collective:
    """What is particular to one collective.

    Args:
        redop: How numbers are joined.
        trips: Times that a byte crosses the links, but for a rank's own share: the factor of the bus bandwidth.
        sends_share: Whether a rank sends its share of the message only.
        receives_share: Whether a rank receives its share only.
        places: Where the result can go: PyTorch reduces in place, and its alltoall needs a second buffer.
    """

    redop: str = "none"
    trips: int = 1
    sends_share: bool = False
    receives_share: bool = False
    places: tuple[str, ...] = ("out", "in")


COLLECTIVES = {
    "all_reduce": Collective("sum", trips=2, places=("in",)),
    "all_gather": Collective(sends_share=True),
    "reduce_scatter": Collective("sum", receives_share=True),
    "alltoall": Collective(places=("out",)),
}


@dataclass(frozen=True)
class Group:
    """Ranks that measure together, this process's place among them, and PyTorch's handle; None = all ranks."""

    size: int
    rank: int
    handle: Any = None


def numbers(rank: int, ranks: int, limit: int) -> list[int]:
    """Give what a rank sends, over and over: so small that sums of several ranks are exact, however they are made."""
    apart = -(-4 * ranks // limit)
    most = min(limit // -(-ranks // apart), 63)
    told = (1 + (place * (2 * rank + 1) + rank) % most for place in range(PERIOD))
    return [number if (place + rank) % apart == 0 else 0 for place, number in enumerate(told)]


class Bench:
    """The device of this process, and how it measures."""

    def __init__(self, torch: Any, given: Namespace, device: Any) -> None:
        self.torch, self.dist, self.given, self.device = torch, torch.distributed, given, device
        self.dtype, self.limit = getattr(torch, given.type), EXACT[given.type]
        # not of the dtype: PyTorch before 2.1 cannot tell it there
        self.width = torch.zeros((), dtype=self.dtype).element_size()
        self.buffers: list[Any] = []

    def hold(self, size: int) -> None:
        """Make two buffers of this many bytes."""
        self.buffers = [self.torch.zeros(size // self.width, dtype=self.dtype, device=self.device) for _ in "io"]

    def total(self, values: list[float], group: Group) -> list[float]:
        """Add values of the ranks up, which also makes the ranks wait for each other."""
        tensor = self.torch.tensor(values, dtype=self.torch.float64, device=self.device)
        self.dist.all_reduce(tensor, group=group.handle)
        return list(tensor.tolist())

    def measure(self, operation: str, size: int, group: Group) -> list[Row]:
        """Measure one size in each place where the result can go; none when it is too small for a share each.

        Raises:
            UnsupportedError: The backend does not have this collective, or not for these numbers; all ranks find that.
        """
        parts = 1 if operation == "all_reduce" else group.size
        share = size // self.width // parts
        places = COLLECTIVES[operation].places if share else ()
        try:
            return [self._measure(operation, place, share, share * parts, group) for place in places]
        except RuntimeError as error:
            if not _UNKNOWN.search(str(error)):
                raise
            what = f"{operation} of {self.given.type} with {self.given.backend} of PyTorch {self.torch.__version__}"
            raise UnsupportedError(f"{what} cannot be measured: {error}") from error

    def _measure(self, operation: str, place: str, share: int, whole: int, group: Group) -> Row:
        kind = COLLECTIVES[operation]
        sent, received = self.buffers[0][:whole], self.buffers[place == "out"][:whole]
        own = slice(share * group.rank, share * (group.rank + 1))
        send = sent[own] if kind.sends_share else sent
        receive = received[own] if kind.receives_share else received
        call, told = self._call(operation, send, receive, group), numbers(group.rank, group.size, self.limit)
        self._fill(send, told)
        spent = self._timed(call, group)
        # in place, the result of one call is what the next one sends
        self._fill(send, told)
        call()
        bad = sum(self._wrong(*part) for part in self._expected(operation, receive, share, group))
        spent, wrong = self.total([spent, bad], group)
        seconds, size = spent / group.size, whole * self.width
        algbw = size / seconds / 1e9
        busbw = algbw * kind.trips * (group.size - 1) / group.size
        left = (operation, size, share, self.given.type, kind.redop, place)
        return Row(*left, seconds * 1e6, algbw, busbw, int(wrong))

    def _call(self, operation: str, send: Any, receive: Any, group: Group) -> Callable[[], object]:
        dist, handle = self.dist, group.handle
        calls: dict[str, Callable[[], object]] = {
            "all_reduce": lambda: dist.all_reduce(receive, group=handle),
            "all_gather": lambda: dist.all_gather_into_tensor(receive, send, group=handle),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(receive, send, group=handle),
            "alltoall": lambda: dist.all_to_all_single(receive, send, group=handle),
        }
        return calls[operation]

    def _timed(self, call: Callable[[], object], group: Group) -> float:
        """Give the seconds of one call when many stand one behind the other."""
        for _ in range(self.given.warmup):
            call()
        self.total([0], group)
        start = time.perf_counter()
        for _ in range(self.given.iterations):
            call()
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()
        return (time.perf_counter() - start) / int(self.given.iterations)

    def _expected(self, operation: str, receive: Any, share: int, group: Group) -> Iterator[tuple[Any, list[int], int]]:
        """Give the parts of what arrived, with the numbers that repeat in each and the place where they begin."""
        told = [numbers(rank, group.size, self.limit) for rank in range(group.size)]
        begin = share * group.rank if operation in ("reduce_scatter", "alltoall") else 0
        if COLLECTIVES[operation].redop == "sum":
            yield receive, [sum(each) for each in zip(*told, strict=True)], begin
        else:
            yield from ((receive[share * rank : share * (rank + 1)], each, begin) for rank, each in enumerate(told))

    def _tensor(self, repeated: list[int], begin: int) -> Any:
        at = begin % PERIOD
        return self.torch.tensor(repeated[at:] + repeated[:at], dtype=self.dtype, device=self.device)

    def _fill(self, part: Any, repeated: list[int]) -> None:
        table, whole = self._tensor(repeated, 0), len(part) // PERIOD * PERIOD
        part[:whole].view(-1, PERIOD).copy_(table)
        part[whole:].copy_(table[: len(part) - whole])

    def _wrong(self, part: Any, repeated: list[int], begin: int) -> int:
        table, whole = self._tensor(repeated, begin), len(part) // PERIOD * PERIOD
        blocks = [*part[:whole].view(-1, PERIOD).split(ROWS), part[whole:]]
        return sum(int((block != table[: block.shape[-1]]).sum()) for block in blocks)
{{- end }}
{{- define "gke-a3high.launcher.nccl-test.table.py" }}
"""Rows of measurements, in the columns that nccl-tests prints."""

from __future__ import annotations

from dataclasses import dataclass

HEADER = """\
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)"""
UNITS = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30}


@dataclass(frozen=True)
class Row:
    """One measurement.

    Args:
        operation: The collective.
        bytes: Size of the message: what a rank sends or what it receives, whichever is more.
        count: Elements of it; where each rank has its own share, of one share.
        type: Number format.
        redop: How numbers are joined, or none.
        place: out where the result goes to a second buffer, in where it does not.
        time: Microseconds of one operation.
        algbw: Bytes over time, GB/s.
        busbw: What the links between the GPUs carry, GB/s.
        wrong: Elements of all ranks that are not what they should be.
    """

    operation: str
    bytes: int
    count: int
    type: str
    redop: str
    place: str
    time: float
    algbw: float
    busbw: float
    wrong: int


def written(rows: list[Row]) -> str:
    """Write what was measured of one size as one line; no collective here has a root."""
    row, places = rows[0], {row.place: row for row in rows}
    left = f"{row.bytes:>12}  {row.count:>12}  {row.type:>8}  {row.redop:>6}  {-1:>6}"
    return left + _half(places.get("out")) + _half(places.get("in"))


def _half(row: Row | None) -> str:
    if row is None:
        return f"  {'N/A':>7}  {'N/A':>6}  {'N/A':>6}  {'N/A':>5}"
    digits = 0 if row.time >= 10000 else 1 if row.time >= 100 else 2
    return f"  {row.time:>7.{digits}f}  {row.algbw:>6.2f}  {row.busbw:>6.2f}  {row.wrong:>5}"


def read(line: str, operation: str) -> list[Row]:
    """Read a line of nccl-tests; one that is no row gives nothing."""
    words = line.split()
    if len(words) != 13 or not words[0].isdigit():
        return []
    halves = {"out": words[5:9], "in": words[9:]}
    return [
        Row(
            operation=operation,
            bytes=int(words[0]),
            count=int(words[1]),
            type=words[2],
            redop=words[3],
            place=place,
            time=float(told[0]),
            algbw=float(told[1]),
            busbw=float(told[2]),
            # nccl-tests writes N/A where it does not check
            wrong=0 if told[3] == "N/A" else int(float(told[3])),
        )
        for place, told in halves.items()
        if told[0] != "N/A"
    ]


def bytes_of(text: str) -> int:
    """Give the number of a size such as 16Gi."""
    number = text.rstrip("KMGi")
    return int(number) << UNITS[text.removeprefix(number)]


def size_of(number: int) -> str:
    """Write a size in the largest unit that gives a whole number."""
    unit = max((unit for unit, bits in UNITS.items() if number % (1 << bits) == 0), key=UNITS.__getitem__)
    return f"{number >> UNITS[unit]} {unit}B"
{{- end }}
{{- define "gke-a3high.launcher.nccl-test.tournament.py" }}
"""Pairs of machines: who meets whom, which machine is slow, and how a run avoids it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

Pair = tuple[int, int]


def rounds(machines: int) -> Iterator[list[Pair]]:
    """Pair each machine with each other, at most one at a time, as in a tournament; of an odd number one pauses."""
    seats = [*range(machines), *([-1] * (machines % 2))]
    half = len(seats) // 2
    for _ in seats[1:]:
        pairs = zip(seats[:half], reversed(seats[half:]), strict=True)
        yield [(min(pair), max(pair)) for pair in pairs if -1 not in pair]
        seats = [seats[0], seats[-1], *seats[1:-1]]


def levels(reached: dict[Pair, float], machines: int) -> list[float]:
    """Give what each machine reaches with the best quarter of its partners: a slow partner must not count against it.

    Args:
        reached: Bus bandwidth of each pair.
        machines: How many there are.
    """
    own = [sorted(figure for pair, figure in reached.items() if each in pair) for each in range(machines)]
    return [figures[-(len(figures) // 4 + 1)] for figures in own]


def report(names: list[str], found: list[float], percent: int) -> tuple[list[str], list[str]]:
    """Write what each machine reaches, and which are slow: nothing when none is.

    Args:
        names: Nodes of the cluster, one for each machine.
        found: What each reaches, GB/s.
        percent: A machine is slow below so much of what most machines reach.
    """
    usual, width = statistics.median(found), max(map(len, names))
    table, told, slow = [f"# {'machine':<{width}}  {'busbw':>7}   share"], [], []
    for name, figure in zip(names, found, strict=True):
        share = figure / usual
        table.append(f"  {name:<{width}}  {figure:>7.2f}  {share:>6.1%}")
        if share < percent / 100:
            slow.append(name)
            reached = f"{figure:.2f} GB/s with its partners, {share:.0%} of the {usual:.2f} GB/s of most machines"
            told.append(f"chartgen: nccl-test: {name} is slow: {reached}")
    return table, [*told, *avoidance(slow)] if slow else []


def avoidance(names: list[str]) -> list[str]:
    """Write the values that keep a run away from machines; a field selector takes one name each."""
    return [
        "chartgen: nccl-test: values that keep a run away from what is slow:",
        "affinity:",
        "  nodeAffinity:",
        "    requiredDuringSchedulingIgnoredDuringExecution:",
        "      nodeSelectorTerms:",
        "        - matchFields:",
        *(f'            - {"{"}key: metadata.name, operator: NotIn, values: ["{name}"]{"}"}' for name in names),
    ]
{{- end }}

{{/* Flattens a native configuration into {path: Hydra literal}, as YAML. Takes (list tree prefix). */}}
{{- define "gke-a3high.hydra" }}
{{- $prefix := index . 1 }}
{{- range $key, $value := index . 0 }}
{{- if and (kindIs "map" $value) $value }}
{{- include "gke-a3high.hydra" (list $value (printf "%s%s." $prefix $key)) }}
{{- else }}
{{ printf "%s%s" $prefix $key | toJson }}: {{ include "gke-a3high.hydraValue" $value | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{/*
A value in Hydra's override grammar. Text stands in single quotes; a backslash is doubled where a quote or the end follows,
and a quote gets one, so that any text arrives unchanged.
*/}}
{{- define "gke-a3high.hydraValue" -}}
{{- if kindIs "string" . -}}
'{{ regexReplaceAll `(\\+)$` (regexReplaceAll `(\\*)'` . "${1}${1}\\'") "${1}${1}" }}'
{{- else if kindIs "slice" . -}}
[{{ range $i, $item := . }}{{ if $i }},{{ end }}{{ include "gke-a3high.hydraValue" $item }}{{ end }}]
{{- else if kindIs "map" . -}}
{ {{- range $i, $key := keys . | sortAlpha }}{{ if $i }},{{ end }}{{ $key }}:{{ include "gke-a3high.hydraValue" (get $ $key) }}{{ end -}} }
{{- else -}}
{{ toJson . }}
{{- end }}
{{- end }}
