{{/* Machine types: what one machine of each offers. */}}
{{- define "gke-a3high.machines" -}}
a3-highgpu-8g:
  gpus: 8
  gpu: h100-80gb
  capacity: {"nvidia.com/gpu": "8", "cpu": "207410m", "memory": "1827Gi", "ephemeral-storage": "5300Gi"}
{{- end }}

{{/* Devices that fragments ask for on each machine; the user's values of the same name win over them. */}}
{{- define "gke-a3high.slot.resourceLimits" -}}
{{- if include "gke-a3high.gpu" . }}
{{- /* nvidia-gpu */}}
# Quoted: an unquoted quantity makes each unchanged upgrade a change.
nvidia.com/gpu: {{ include "gke-a3high.gpusPerNode" . | quote }}
{{- end }}
{{- end }}

{{/*
What a queue may hand out, as {resource: quantity}: all of setup.quota.nodes machines, or of as many as the run has, with
what the machine type does not list and pods of these values ask for all the same.
*/}}
{{- define "gke-a3high.quota" -}}
{{- $nodes := .Values.setup.quota.nodes | default .Values.nodes | int64 }}
{{- $machine := get (include "gke-a3high.machines" . | fromYaml) .Values.machineType }}
{{- $run := merge (dict "Values" (merge (dict "nodes" $nodes) .Values)) . }}
{{- $each := merge (dict) (.Values.setup.quota.resources | default (dict)) $machine.capacity }}
{{- $_ := merge $each (include "gke-a3high.slot.resourceLimits" $run | fromYaml) }}
{{- range prepend (values .Values.launchers) (get .Values.launchers .Values.launcher) }}
{{- with .resources }}
{{- $_ := merge $each (.limits | default (dict)) (.requests | default (dict)) }}
{{- end }}
{{- end }}
{{- range $name, $quantity := $each }}
{{ $name }}: {{ printf "%d%s" (mul $nodes (regexFind "^[0-9.]+" (toString $quantity) | float64 | ceil)) (regexFind "[A-Za-z]*$" (toString $quantity)) | quote }}
{{- end }}
{{- end }}

{{/* Launchers: what each does, starts and can train in. */}}
{{- define "gke-a3high.launchers" -}}
megatron-lm:
  task: train
  processes: gpu
  program: "/opt/megatron-lm/pretrain_gpt.py"
  image: "nvcr.io/nvidia/nemo:25.07"
  precisions: ["bf16", "fp16", "fp32", "fp8", "mxfp8", "nvfp4"]
  owns: {"parallelism.tensor": ["tensor-model-parallel-size"], "parallelism.pipeline": ["pipeline-model-parallel-size"], "parallelism.virtualPipeline": ["num-layers-per-virtual-pipeline-stage", "num-virtual-stages-per-pipeline-rank", "pipeline-model-parallel-layout"], "parallelism.context": ["context-parallel-size"], "parallelism.expert": ["expert-model-parallel-size"], "parallelism.expertTensor": ["expert-tensor-parallel-size"], "parallelism.sequence": ["sequence-parallel"], "parallelism.distributedOptimizer": ["use-distributed-optimizer"], "batch.micro": ["micro-batch-size"], "batch.global": ["global-batch-size"], "sequenceLength": ["seq-length", "max-position-embeddings"], "model.layers": ["num-layers"], "model.hiddenSize": ["hidden-size"], "model.ffnHiddenSize": ["ffn-hidden-size"], "model.attentionHeads": ["num-attention-heads"], "model.queryGroups": ["num-query-groups", "group-query-attention"], "model.vocabularySize": ["vocab-size"], "model.experts": ["num-experts"], "model.expertsPerToken": ["moe-router-topk"], "model.family": ["normalization", "position-embedding-type", "swiglu", "disable-bias-linear"], "model.rotaryBase": ["rotary-base"], "model.initStandardDeviation": ["init-method-std"], "model.tiedEmbeddings": ["untie-embeddings-and-output-weights"], "precision": ["bf16", "fp16", "fp8-format", "fp4-format"], "recompute": ["recompute-granularity", "recompute-activations", "recompute-method", "recompute-num-layers"], "steps": ["train-iters"], "optimizer.learningRate": ["lr"], "optimizer.minLearningRate": ["min-lr"], "optimizer.warmupSteps": ["lr-warmup-iters"], "optimizer.decay": ["lr-decay-style"], "optimizer.weightDecay": ["weight-decay"], "optimizer.clipGradient": ["clip-grad"], "evaluation.interval": ["eval-interval"], "evaluation.batches": ["eval-iters"], "data.name": ["data-path", "mock-data", "train-data-path", "data-args-path", "data-cache-path"], "data.split": ["split"], "tokenizer.kind": ["tokenizer-type"], "tokenizer.path": ["tokenizer-model", "vocab-file", "merge-file"], "checkpoint.enabled": ["save", "load"], "checkpoint.interval": ["save-interval"], "checkpoint.from": ["pretrained-checkpoint"], "profile.enabled": ["profile"], "profile.startStep": ["profile-step-start"], "profile.endStep": ["profile-step-end"], "profile.ranks": ["profile-ranks"]}
  defaults: {"optimizer.learningRate": 6e-05, "optimizer.minLearningRate": 6e-06, "optimizer.warmupSteps": 0, "optimizer.decay": "cosine", "optimizer.weightDecay": 0.1, "optimizer.clipGradient": 1.0, "model.initStandardDeviation": 0.006}
nemo-1:
  task: train
  processes: gpu
  program: "/opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py"
  image: "nvcr.io/nvidia/nemo:24.07"
  precisions: ["bf16", "fp16", "fp32", "fp8"]
  owns: {"nodes": ["trainer.num_nodes"], "gpusPerNode": ["trainer.devices"], "precision": ["trainer.precision"], "steps": ["trainer.max_steps"], "evaluation.interval": ["trainer.val_check_interval"], "evaluation.batches": ["trainer.limit_val_batches"], "batch.micro": ["model.micro_batch_size"], "batch.global": ["model.global_batch_size"], "parallelism.tensor": ["model.tensor_model_parallel_size"], "parallelism.pipeline": ["model.pipeline_model_parallel_size"], "parallelism.virtualPipeline": ["model.virtual_pipeline_model_parallel_size"], "parallelism.context": ["model.context_parallel_size"], "parallelism.expert": ["model.expert_model_parallel_size"], "parallelism.sequence": ["model.sequence_parallel"], "parallelism.distributedOptimizer": ["model.optim.name"], "sequenceLength": ["model.encoder_seq_length"], "model.layers": ["model.num_layers"], "model.hiddenSize": ["model.hidden_size"], "model.ffnHiddenSize": ["model.ffn_hidden_size"], "model.attentionHeads": ["model.num_attention_heads"], "model.queryGroups": ["model.num_query_groups"], "model.experts": ["model.num_moe_experts"], "model.expertsPerToken": ["model.moe_router_topk"], "model.rotaryBase": ["model.rotary_base"], "model.initStandardDeviation": ["model.init_method_std"], "model.tiedEmbeddings": ["model.share_embeddings_and_output_weights"], "optimizer.learningRate": ["model.optim.lr"], "optimizer.minLearningRate": ["model.optim.sched.min_lr"], "optimizer.warmupSteps": ["model.optim.sched.warmup_steps"], "optimizer.decay": ["model.optim.sched.name"], "optimizer.weightDecay": ["model.optim.weight_decay"], "optimizer.clipGradient": ["trainer.gradient_clip_val"], "recompute": ["model.activations_checkpoint_granularity", "model.activations_checkpoint_method", "model.activations_checkpoint_num_layers"], "tokenizer.path": ["model.tokenizer"], "data.prefixes": ["model.data.data_prefix"], "data.split": ["model.data.splits_string"], "checkpoint.enabled": ["exp_manager.create_checkpoint_callback"], "checkpoint.interval": ["exp_manager.checkpoint_callback_params.every_n_train_steps"], "checkpoint.from": ["restore_from_path"], "run.name": ["exp_manager.explicit_log_dir"], "profile.enabled": ["model.nsys_profile.enabled"], "profile.startStep": ["model.nsys_profile.start_step"], "profile.endStep": ["model.nsys_profile.end_step"], "profile.ranks": ["model.nsys_profile.ranks"]}
  defaults: {"optimizer.learningRate": 0.0002, "optimizer.minLearningRate": 2e-05, "optimizer.warmupSteps": 500, "optimizer.decay": "cosine", "optimizer.weightDecay": 0.01, "optimizer.clipGradient": 1.0, "model.initStandardDeviation": 0.02}
mlperf-llama2-lora:
  task: train
  processes: gpu
  program: "/workspace/ft-llm/train.py"
  image: ""
  precisions: ["fp8"]
  owns: {"nodes": ["DGXNNODES"], "gpusPerNode": ["DGXNGPU"], "steps": ["MAX_STEPS"], "batch.micro": ["MBS"], "batch.global": ["MINIBS"], "sequenceLength": ["MAX_SEQLEN"], "optimizer.learningRate": ["LR"], "optimizer.warmupSteps": ["WARMUP_STEPS"], "model.layers": ["OVERWRITTEN_NUM_LAYERS"], "parallelism.tensor": ["TP"], "parallelism.pipeline": ["PP"], "parallelism.context": ["CP"], "parallelism.sequence": ["SP"], "parallelism.distributedOptimizer": ["USE_DISTRIBUTED_OPTIMIZER"], "precision": ["FP8"], "launchers.mlperf-llama2-lora.seed": ["SEED"], "launchers.mlperf-llama2-lora.system": ["DGXSYSTEM"]}
  defaults: {"optimizer.learningRate": 0.0004, "optimizer.warmupSteps": 0}
mlperf-preprocess:
  task: data
  processes: one
  program: "/etc/chartgen/program.sh"
  sameAs: mlperf-llama2-lora
  precisions: []
  owns: {}
  defaults: {}
download:
  task: data
  processes: one
  program: "/etc/chartgen/program.py"
  modules: ["places.py", "web.py"]
  image: "docker.io/library/python:3.12.11-slim"
  precisions: []
  owns: {}
  defaults: {}
megatron-preprocess:
  task: data
  processes: one
  program: "/etc/chartgen/program.sh"
  sameAs: megatron-lm
  precisions: []
  owns: {}
  defaults: {}
pile-dataprep:
  task: data
  processes: workers
  program: "/etc/chartgen/program.sh"
  sameAs: nemo-1
  precisions: []
  owns: {}
  defaults: {}
nccl-test:
  task: test
  processes: gpu
  program: "/etc/chartgen/program.py"
  modules: ["collectives.py", "table.py", "tournament.py"]
  sameAs: megatron-lm
  precisions: []
  owns: {}
  defaults: {}
{{- end }}

{{/* The chosen launcher, as YAML; its values win over its defaults. */}}
{{- define "gke-a3high.launcher" -}}
{{- $launcher := get (include "gke-a3high.launchers" . | fromYaml) .Values.launcher }}
{{- range $key, $value := get .Values.launchers .Values.launcher }}
{{- if $value }}{{ $_ := set $launcher $key $value }}{{ end }}
{{- end }}
{{- if not $launcher.image }}
{{- with $launcher.sameAs }}
{{- $_ := set $launcher "image" ((get $.Values.launchers .).image | default (get (include "gke-a3high.launchers" $ | fromYaml) .).image) }}
{{- end }}
{{- end }}
{{- toYaml $launcher }}
{{- end }}

{{/* One value, by (root, "section.name"), as JSON: the launcher's default where it is null; nothing where both are. */}}
{{- define "gke-a3high.setting" -}}
{{- $root := index . 0 }}
{{- $path := index . 1 | splitList "." }}
{{- $value := index (get $root.Values (first $path)) (last $path) }}
{{- if kindIs "invalid" $value }}
{{- $value = get (include "gke-a3high.launcher" $root | fromYaml).defaults (index . 1) }}
{{- end }}
{{- /* --set passes numbers with a point as text */}}
{{- if and (kindIs "string" $value) (regexMatch "^[0-9.]" $value) }}{{ $value = float64 $value }}{{ end }}
{{- if ne (toString $value) "" }}{{ toJson $value }}{{ end }}
{{- end }}

{{/* What is computed again: granularity, method and layers; a word alone is the granularity. */}}
{{- define "gke-a3high.recompute" -}}
{{- $given := .Values.recompute }}
{{- merge dict (kindIs "map" $given | ternary $given (dict "granularity" $given)) (dict "method" "uniform" "layers" 1) | toYaml }}
{{- end }}

{{/* Whether the run uses GPUs: "true" or nothing. */}}
{{- define "gke-a3high.gpu" -}}
{{- if ne (include "gke-a3high.launcher" . | fromYaml).task "data" }}true{{ end }}
{{- end }}

{{/* Pods of the run: the machines of a GPU program; what a program without GPUs says itself, else one. */}}
{{- define "gke-a3high.nodes" -}}
{{- $launcher := include "gke-a3high.launcher" . | fromYaml }}
{{- if eq $launcher.processes "gpu" }}{{ int64 .Values.nodes }}{{ else }}{{ $launcher.nodes | default 1 | int64 }}{{ end }}
{{- end }}

{{/* GPUs of each machine that the run uses: those asked for, or all. */}}
{{- define "gke-a3high.gpusPerNode" -}}
{{- $machine := get (include "gke-a3high.machines" . | fromYaml) .Values.machineType }}
{{- .Values.gpusPerNode | default $machine.gpus | int64 }}
{{- end }}

{{/* Processes of the run, one for each GPU. */}}
{{- define "gke-a3high.worldSize" -}}
{{- mul (include "gke-a3high.gpusPerNode" . | int64) .Values.nodes }}
{{- end }}

{{/* Copies of the model that train side by side; cut to a whole number. */}}
{{- define "gke-a3high.dataParallel" -}}
{{- $p := .Values.parallelism }}
{{- div (include "gke-a3high.worldSize" . | int64) (mul $p.tensor $p.pipeline $p.context) | max 1 }}
{{- end }}

{{/* Samples of one step; "2/gpu" grows with the run. */}}
{{- define "gke-a3high.globalBatch" -}}
{{- $global := .Values.batch.global }}
{{- if kindIs "string" $global }}
{{- mul (trimSuffix "/gpu" $global | int64) (include "gke-a3high.worldSize" . | int64) }}
{{- else }}
{{- int64 $global }}
{{- end }}
{{- end }}

{{/* Layers that pipeline stages share: the model's, and embedding and loss where the program counts them too. */}}
{{- define "gke-a3high.pipelineLayers" -}}
{{- $layers := int64 .Values.model.layers }}
{{- $config := (get .Values.launchers .Values.launcher).config | default (dict) }}
{{- $nested := kindIs "map" $config.model | ternary $config.model (dict) }}
{{- range list "embedding" "loss" }}
{{- $flag := printf "account-for-%s-in-pipeline-split" . }}
{{- if or (get $config $flag) (get $nested (replace "-" "_" $flag)) }}{{ $layers = add1 $layers }}{{ end }}
{{- end }}
{{- $layers }}
{{- end }}

{{/* Whether the first or the last pipeline stage has layers of its own number: "true" or nothing. */}}
{{- define "gke-a3high.unevenStages" -}}
{{- $config := (get .Values.launchers .Values.launcher).config | default (dict) }}
{{- $nested := kindIs "map" $config.model | ternary $config.model (dict) }}
{{- $uneven := false }}
{{- range list "first" "last" }}
{{- if or (get $config (printf "decoder-%s-pipeline-num-layers" .)) (get $nested (printf "num_layers_in_%s_pipeline_stage" .)) }}{{ $uneven = true }}{{ end }}
{{- end }}
{{- if $uneven }}true{{ end }}
{{- end }}

{{/* GPUs that share one expert: those asked for, or as many as share the rest of a layer. */}}
{{- define "gke-a3high.expertTensor" -}}
{{- .Values.parallelism.expertTensor | default .Values.parallelism.tensor | int64 }}
{{- end }}
