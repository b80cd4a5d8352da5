{{/*
megatron-lm: Megatron-LM pretraining of GPT models, configured by command line options.
What the templates of a run include by these names; empty = this launcher needs none.
*/}}
{{- define "oke-h100.launcher.megatron-lm.config" }}
{{- $p := .Values.parallelism }}
{{- $m := .Values.model }}
{{- $gpt := eq $m.family "gpt" }}
{{- $evaluates := gt (int64 .Values.evaluation.batches) 0 }}
{{- $data := include "oke-h100.dataPrefixes" . | fromYamlArray }}
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
{{- $own := (get .Values.launchers "megatron-lm").config | default dict }}
{{- $uneven := or (get $own "decoder-first-pipeline-num-layers") (get $own "decoder-last-pipeline-num-layers") }}
{{- if and (gt (int64 $p.virtualPipeline) 1) $uneven }}
num-virtual-stages-per-pipeline-rank: {{ int64 $p.virtualPipeline }}
{{- else if gt (int64 $p.virtualPipeline) 1 }}
# Older versions have only this one of the two.
num-layers-per-virtual-pipeline-stage: {{ div (include "oke-h100.pipelineLayers" .) (mul $p.pipeline $p.virtualPipeline) }}
{{- end }}
context-parallel-size: {{ int64 $p.context }}
expert-model-parallel-size: {{ int64 $p.expert }}
{{- with $p.expertTensor }}
expert-tensor-parallel-size: {{ int64 . }}
{{- end }}
sequence-parallel: {{ $p.sequence }}
use-distributed-optimizer: {{ $p.distributedOptimizer }}
micro-batch-size: {{ int64 .Values.batch.micro }}
global-batch-size: {{ .Run.globalBatch }}
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
{{- $recompute := include "oke-h100.recompute" . | fromYaml }}
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
# weight, path, weight, path, ...; a single path has no weight
data-path:
  {{- range $data }}
  {{- if gt (len $data) 1 }}
  - {{ .weight }}
  {{- end }}
  - {{ .path | quote }}
  {{- end }}
data-cache-path: {{ include "oke-h100.dataCache" . | quote }}
{{- else }}
mock-data: true
{{- end }}
{{- include "oke-h100.megatronTokenizer" . }}
{{- if .Values.checkpoint.enabled }}
save: {{ printf "%s/checkpoints" .Run.home | quote }}
load: {{ printf "%s/checkpoints" .Run.home | quote }}
save-interval: {{ int64 .Values.checkpoint.interval }}
# Saves once more before Kubernetes takes the machines away.
exit-signal-handler: true
{{- if ge (include "oke-h100.imageRelease" . | int64) 2504 }}
# A process that stays writes them beside the training (without it, NaN was seen: NVIDIA/Megatron-LM#1713).
async-save: true
use-persistent-ckpt-worker: true
{{- end }}
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
{{- with .Values.wandb.project }}
wandb-project: {{ quote . }}
wandb-exp-name: {{ $.Run.name }}
# By default a folder of the checkpoints, which a run may not have.
wandb-save-dir: {{ $.Run.directory | quote }}
{{- end }}
lr: {{ include "oke-h100.setting" (list . "optimizer.learningRate") }}
min-lr: {{ include "oke-h100.setting" (list . "optimizer.minLearningRate") }}
lr-decay-style: {{ include "oke-h100.setting" (list . "optimizer.decay") }}
{{- if not (kindIs "invalid" .Values.optimizer.warmupSteps) }}
lr-warmup-iters: {{ int64 .Values.optimizer.warmupSteps }}
{{- if ge (int64 .Values.optimizer.warmupSteps) (int64 .Values.steps) }}
# Megatron-LM wants the warm-up to end before the decay does, also in a run that ends before either.
lr-decay-iters: {{ add1 .Values.optimizer.warmupSteps }}
{{- end }}
{{- end }}
clip-grad: {{ include "oke-h100.setting" (list . "optimizer.clipGradient") }}
weight-decay: {{ include "oke-h100.setting" (list . "optimizer.weightDecay") }}
init-method-std: {{ include "oke-h100.setting" (list . "model.initStandardDeviation") }}
# From here on the guide's GPT-3 recipe and logs; the user's own configuration wins over it.
adam-beta1: 0.9
adam-beta2: 0.95
log-interval: 1
log-throughput: true
tensorboard-dir: {{ printf "%s/tensorboard" .Run.directory | quote }}
{{- end }}
{{- define "oke-h100.launcher.megatron-lm.args" }}
{{- $options := deepCopy .Run.config }}
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
{{- define "oke-h100.launcher.megatron-lm.env" }}
# Megatron-LM refuses tensor and context parallelism without it on GPUs before Blackwell.
- {name: CUDA_DEVICE_MAX_CONNECTIONS, value: "1"}
{{- end }}
{{- define "oke-h100.launcher.megatron-lm.files" }}{{ end }}
{{- define "oke-h100.launcher.megatron-lm.beforeLaunch" }}
{{ .Files.Get "files/launchers/megatron-lm/beforeLaunch.sh" }}
{{- end }}
{{- define "oke-h100.launcher.megatron-lm.launch" }}{{ end }}
{{- define "oke-h100.launcher.megatron-lm.beforeRank" }}{{ end }}
{{- define "oke-h100.launcher.megatron-lm.programs" }}{{ end }}
