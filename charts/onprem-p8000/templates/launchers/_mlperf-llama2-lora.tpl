{{/*
mlperf-llama2-lora: MLPerf Training benchmark llama2_70b_lora, Llama 2 70B fine-tuned with LoRA, configured by variables.
What the templates of a run include by these names; empty = this launcher needs none.
*/}}
{{- define "onprem-p8000.launcher.mlperf-llama2-lora.config" }}
{{- $p := .Values.parallelism }}
{{- $own := get .Values.launchers "mlperf-llama2-lora" }}
{{- $gpus := .Run.gpusPerNode }}
{{- $machine := .Run.machine }}
# The benchmark multiplies samples of one step and replica by the replicas.
{{- $samples := div .Run.globalBatch .Run.dataParallel }}
{{- $layout := printf "tp%dpp%dcp%d" (int64 $p.tensor) (int64 $p.pipeline) (int64 $p.context) }}
{{- $system := $own.system | default .Values.machineType }}
DGXSYSTEM: {{ printf "%s_%dx%dx%dx%s" $system (int64 .Values.nodes) $gpus $samples $layout }}
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
{{- define "onprem-p8000.launcher.mlperf-llama2-lora.args" }}{{ end }}
{{- define "onprem-p8000.launcher.mlperf-llama2-lora.env" }}
{{- $own := get .Values.launchers "mlperf-llama2-lora" }}
{{- $variables := deepCopy .Run.config }}
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
{{- define "onprem-p8000.launcher.mlperf-llama2-lora.mounts" }}
# Where the benchmark looks for its data and its base weights, and writes what it finds.
- mountPath: /data
  from: {{ .Values.data.directory | quote }}
  readOnly: true
- mountPath: /ckpt
  from: {{ .Values.checkpoint.from | default "/data" | quote }}
  readOnly: true
- mountPath: /results
  from: {{ .Run.directory | quote }}
{{- end }}
{{- define "onprem-p8000.launcher.mlperf-llama2-lora.files" }}{{ end }}
{{- define "onprem-p8000.launcher.mlperf-llama2-lora.beforeLaunch" }}
{{ .Files.Get "files/launchers/mlperf-llama2-lora/beforeLaunch.sh" }}
{{- end }}
{{- define "onprem-p8000.launcher.mlperf-llama2-lora.launch" }}{{ end }}
{{- define "onprem-p8000.launcher.mlperf-llama2-lora.beforeRank" }}
{{ .Files.Get "files/launchers/mlperf-llama2-lora/beforeRank.sh" }}
{{- end }}
{{- define "onprem-p8000.launcher.mlperf-llama2-lora.programs" }}{{ end }}
