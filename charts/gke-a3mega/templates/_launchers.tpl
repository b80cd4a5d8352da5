{{/* Launchers: what each does, starts and can train in. */}}
{{- define "gke-a3mega.launchers" -}}
megatron-lm:
  task: train
  processes: gpu
  program: "/opt/megatron-lm/pretrain_gpt.py"
  image: "nvcr.io/nvidia/nemo:25.07"
  precisions: ["bf16", "fp16", "fp32", "fp8", "mxfp8", "nvfp4"]
  owns: {"parallelism.tensor": ["tensor-model-parallel-size"], "parallelism.pipeline": ["pipeline-model-parallel-size"], "parallelism.virtualPipeline": ["num-layers-per-virtual-pipeline-stage", "num-virtual-stages-per-pipeline-rank", "pipeline-model-parallel-layout"], "parallelism.context": ["context-parallel-size"], "parallelism.expert": ["expert-model-parallel-size"], "parallelism.expertTensor": ["expert-tensor-parallel-size"], "parallelism.sequence": ["sequence-parallel"], "parallelism.distributedOptimizer": ["use-distributed-optimizer"], "batch.micro": ["micro-batch-size"], "batch.global": ["global-batch-size"], "sequenceLength": ["seq-length", "max-position-embeddings"], "model.layers": ["num-layers"], "model.hiddenSize": ["hidden-size"], "model.ffnHiddenSize": ["ffn-hidden-size"], "model.attentionHeads": ["num-attention-heads"], "model.queryGroups": ["num-query-groups", "group-query-attention"], "model.vocabularySize": ["vocab-size"], "model.experts": ["num-experts"], "model.expertsPerToken": ["moe-router-topk"], "model.family": ["normalization", "position-embedding-type", "swiglu", "disable-bias-linear"], "model.rotaryBase": ["rotary-base"], "model.initStandardDeviation": ["init-method-std"], "model.tiedEmbeddings": ["untie-embeddings-and-output-weights"], "precision": ["bf16", "fp16", "fp8-format", "fp4-format"], "recompute": ["recompute-granularity", "recompute-activations", "recompute-method", "recompute-num-layers"], "steps": ["train-iters"], "optimizer.learningRate": ["lr"], "optimizer.minLearningRate": ["min-lr"], "optimizer.warmupSteps": ["lr-warmup-iters"], "optimizer.decay": ["lr-decay-style"], "optimizer.weightDecay": ["weight-decay"], "optimizer.clipGradient": ["clip-grad"], "evaluation.interval": ["eval-interval"], "evaluation.batches": ["eval-iters"], "data.name": ["data-path", "mock-data", "train-data-path", "data-args-path", "data-cache-path"], "data.split": ["split"], "tokenizer.kind": ["tokenizer-type"], "tokenizer.path": ["tokenizer-model", "vocab-file", "merge-file"], "checkpoint.enabled": ["save", "load"], "checkpoint.interval": ["save-interval"], "checkpoint.from": ["pretrained-checkpoint"], "profile.enabled": ["profile"], "profile.startStep": ["profile-step-start"], "profile.endStep": ["profile-step-end"], "profile.ranks": ["profile-ranks"], "wandb.project": ["wandb-project", "wandb-exp-name", "wandb-save-dir"], "wandb.entity": ["wandb-entity"]}
  defaults: {"optimizer.learningRate": 6e-05, "optimizer.minLearningRate": 6e-06, "optimizer.warmupSteps": 0, "optimizer.decay": "cosine", "optimizer.weightDecay": 0.1, "optimizer.clipGradient": 1.0, "model.initStandardDeviation": 0.006}
  stepLine: {"find": [" iteration +(?P<step>[0-9]+)/", "elapsed time per iteration \\(ms\\): *(?P<milliseconds>[0-9.]+) \\|"], "also": ["lm loss: *(?P<loss>[^ |]+) \\|", "global batch size: *(?P<batch>[0-9]+) \\|"]}
megatron-bridge:
  task: train
  processes: gpu
  program: "/opt/Megatron-Bridge/scripts/training/run_recipe.py"
  image: "nvcr.io/nvidia/nemo:26.06"
  precisions: ["bf16", "fp16", "fp8", "mxfp8", "nvfp4"]
  owns: {"parallelism.tensor": ["model.tensor_model_parallel_size"], "parallelism.pipeline": ["model.pipeline_model_parallel_size"], "parallelism.virtualPipeline": ["model.virtual_pipeline_model_parallel_size"], "parallelism.context": ["model.context_parallel_size"], "parallelism.expert": ["model.expert_model_parallel_size"], "parallelism.expertTensor": ["model.expert_tensor_parallel_size"], "parallelism.sequence": ["model.sequence_parallel"], "parallelism.distributedOptimizer": ["ddp.use_distributed_optimizer", "optimizer.use_distributed_optimizer"], "batch.micro": ["train.micro_batch_size"], "batch.global": ["train.global_batch_size"], "sequenceLength": ["dataset.seq_length", "dataset.sequence_length", "model.seq_length"], "model.layers": ["model.num_layers"], "model.hiddenSize": ["model.hidden_size"], "model.ffnHiddenSize": ["model.ffn_hidden_size"], "model.attentionHeads": ["model.num_attention_heads"], "model.queryGroups": ["model.num_query_groups"], "model.vocabularySize": ["tokenizer.vocab_size"], "model.experts": ["model.num_moe_experts"], "model.expertsPerToken": ["model.moe_router_topk"], "model.family": ["model.normalization", "model.position_embedding_type", "model.gated_linear_unit", "model.activation_func", "model.add_bias_linear"], "model.rotaryBase": ["model.rotary_base"], "model.initStandardDeviation": ["model.init_method_std"], "model.tiedEmbeddings": ["model.share_embeddings_and_output_weights"], "precision": ["mixed_precision"], "recompute": ["model.recompute_granularity", "model.recompute_method", "model.recompute_num_layers"], "steps": ["train.train_iters"], "optimizer.learningRate": ["optimizer.lr"], "optimizer.minLearningRate": ["optimizer.min_lr"], "optimizer.warmupSteps": ["scheduler.lr_warmup_iters"], "optimizer.decay": ["scheduler.lr_decay_style"], "optimizer.weightDecay": ["optimizer.weight_decay", "scheduler.start_weight_decay", "scheduler.end_weight_decay"], "optimizer.clipGradient": ["optimizer.clip_grad"], "evaluation.interval": ["validation.eval_interval", "train.eval_interval"], "evaluation.batches": ["validation.eval_iters", "train.eval_iters"], "data.name": ["dataset.data_path", "dataset.blend", "dataset.path_to_cache"], "data.split": ["dataset.split"], "tokenizer.kind": ["tokenizer.tokenizer_type"], "tokenizer.path": ["tokenizer.tokenizer_model", "tokenizer.vocab_file", "tokenizer.merge_file"], "checkpoint.enabled": ["checkpoint.save", "checkpoint.load"], "checkpoint.interval": ["checkpoint.save_interval"], "checkpoint.from": ["checkpoint.pretrained_checkpoint"], "profile.enabled": ["profiling.use_nsys_profiler"], "profile.startStep": ["profiling.profile_step_start"], "profile.endStep": ["profiling.profile_step_end"], "profile.ranks": ["profiling.profile_ranks"], "wandb.project": ["logger.wandb_project", "logger.wandb_exp_name", "logger.wandb_save_dir"], "wandb.entity": ["logger.wandb_entity"], "mlflow.experiment": ["logger.mlflow_experiment", "logger.mlflow_run_name"], "mlflow.uri": ["logger.mlflow_tracking_uri"]}
  defaults: {"optimizer.learningRate": 0.0003, "optimizer.minLearningRate": 3e-05, "optimizer.warmupSteps": 0, "optimizer.decay": "cosine", "optimizer.weightDecay": 0.1, "optimizer.clipGradient": 1.0, "model.initStandardDeviation": 0.02}
  stepLine: {"find": [" iteration +(?P<step>[0-9]+)/", "elapsed time per iteration \\(ms\\): *(?P<milliseconds>[0-9.]+) \\|"], "also": ["lm loss: *(?P<loss>[^ |]+) \\|", "global batch size: *(?P<batch>[0-9]+) \\|"]}
  ownModel: recipe
nemo-1:
  task: train
  processes: gpu
  program: "/opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py"
  image: "nvcr.io/nvidia/nemo:24.07"
  precisions: ["bf16", "fp16", "fp32", "fp8"]
  owns: {"nodes": ["trainer.num_nodes"], "gpusPerNode": ["trainer.devices"], "precision": ["trainer.precision"], "steps": ["trainer.max_steps"], "evaluation.interval": ["trainer.val_check_interval"], "evaluation.batches": ["trainer.limit_val_batches"], "batch.micro": ["model.micro_batch_size"], "batch.global": ["model.global_batch_size"], "parallelism.tensor": ["model.tensor_model_parallel_size"], "parallelism.pipeline": ["model.pipeline_model_parallel_size"], "parallelism.virtualPipeline": ["model.virtual_pipeline_model_parallel_size"], "parallelism.context": ["model.context_parallel_size"], "parallelism.expert": ["model.expert_model_parallel_size"], "parallelism.sequence": ["model.sequence_parallel"], "parallelism.distributedOptimizer": ["model.optim.name"], "sequenceLength": ["model.encoder_seq_length"], "model.layers": ["model.num_layers"], "model.hiddenSize": ["model.hidden_size"], "model.ffnHiddenSize": ["model.ffn_hidden_size"], "model.attentionHeads": ["model.num_attention_heads"], "model.queryGroups": ["model.num_query_groups"], "model.experts": ["model.num_moe_experts"], "model.expertsPerToken": ["model.moe_router_topk"], "model.rotaryBase": ["model.rotary_base"], "model.initStandardDeviation": ["model.init_method_std"], "model.tiedEmbeddings": ["model.share_embeddings_and_output_weights"], "optimizer.learningRate": ["model.optim.lr"], "optimizer.minLearningRate": ["model.optim.sched.min_lr"], "optimizer.warmupSteps": ["model.optim.sched.warmup_steps"], "optimizer.decay": ["model.optim.sched.name"], "optimizer.weightDecay": ["model.optim.weight_decay"], "optimizer.clipGradient": ["trainer.gradient_clip_val"], "recompute": ["model.activations_checkpoint_granularity", "model.activations_checkpoint_method", "model.activations_checkpoint_num_layers"], "tokenizer.path": ["model.tokenizer"], "data.prefixes": ["model.data.data_prefix"], "data.split": ["model.data.splits_string"], "checkpoint.enabled": ["exp_manager.create_checkpoint_callback"], "checkpoint.interval": ["exp_manager.checkpoint_callback_params.every_n_train_steps"], "checkpoint.from": ["restore_from_path"], "run.name": ["exp_manager.explicit_log_dir"], "profile.enabled": ["model.nsys_profile.enabled"], "profile.startStep": ["model.nsys_profile.start_step"], "profile.endStep": ["model.nsys_profile.end_step"], "profile.ranks": ["model.nsys_profile.ranks"], "wandb.project": ["exp_manager.create_wandb_logger", "exp_manager.wandb_logger_kwargs.project", "exp_manager.wandb_logger_kwargs.name"], "wandb.entity": ["exp_manager.wandb_logger_kwargs.entity"]}
  defaults: {"optimizer.learningRate": 0.0002, "optimizer.minLearningRate": 2e-05, "optimizer.warmupSteps": 500, "optimizer.decay": "cosine", "optimizer.weightDecay": 0.01, "optimizer.clipGradient": 1.0, "model.initStandardDeviation": 0.02}
  stepLine: {"find": ["global_step=(?P<step>[0-9.e+]+)[],]", "train_step_timing in s=(?P<seconds>[0-9.e+-]+)[],]"], "also": ["reduced_train_loss=(?P<loss>[0-9.e+-]+|nan|inf)"]}
automodel:
  task: train
  processes: gpu
  program: "-m nemo_automodel.cli.app"
  image: "nvcr.io/nvidia/nemo-automodel:26.06.00"
  precisions: ["bf16", "fp32"]
  owns: {"parallelism.tensor": ["distributed.tp_size"], "parallelism.pipeline": ["distributed.pp_size"], "parallelism.virtualPipeline": ["distributed.pipeline.pp_schedule"], "parallelism.context": ["distributed.cp_size"], "parallelism.expert": ["distributed.ep_size"], "parallelism.sequence": ["distributed.sequence_parallel"], "batch.micro": ["step_scheduler.local_batch_size", "distributed.pipeline.pp_microbatch_size", "distributed.pipeline.pp_batch_size"], "batch.global": ["step_scheduler.global_batch_size"], "sequenceLength": ["distributed.pipeline.pp_seq_len"], "precision": ["distributed.mp_policy.param_dtype"], "recompute": ["distributed.activation_checkpointing"], "steps": ["step_scheduler.max_steps"], "optimizer.learningRate": ["optimizer.lr"], "optimizer.minLearningRate": ["lr_scheduler.min_lr"], "optimizer.warmupSteps": ["lr_scheduler.lr_warmup_steps"], "optimizer.decay": ["lr_scheduler.lr_decay_style"], "optimizer.weightDecay": ["optimizer.weight_decay"], "optimizer.clipGradient": ["clip_grad_norm.max_norm"], "evaluation.interval": ["step_scheduler.val_every_steps"], "evaluation.batches": ["validation_dataset", "validation_dataloader"], "data.name": ["dataset"], "checkpoint.enabled": ["checkpoint.enabled", "checkpoint.checkpoint_dir", "checkpoint.restore_from"], "checkpoint.interval": ["step_scheduler.ckpt_every_steps"], "checkpoint.from": ["model._target_"], "wandb.project": ["wandb.project", "wandb.name"], "wandb.entity": ["wandb.entity"], "mlflow.experiment": ["mlflow.experiment_name", "mlflow.run_name"], "mlflow.uri": ["mlflow.tracking_uri"], "launchers.automodel.model": ["model.pretrained_model_name_or_path", "model.config"], "launchers.automodel.loraRank": ["peft._target_", "peft.dim"]}
  defaults: {"optimizer.learningRate": 0.0003, "optimizer.decay": "cosine", "optimizer.weightDecay": 0.1, "optimizer.clipGradient": 1.0}
  stepLine: {"find": ["step (?P<step>[0-9]+) \\| epoch ", "loss (?P<loss>[0-9.e+-]+|nan|inf) \\| grad_norm ", "\\((?P<tokens>[0-9.e+]+)/gpu\\)"]}
  ownModel: model
torchtitan:
  task: train
  processes: gpu
  program: "-m torchtitan.train"
  image: ""
  precisions: ["bf16", "fp32"]
  owns: {"parallelism.tensor": ["parallelism.tensor_parallel_degree"], "parallelism.pipeline": ["parallelism.pipeline_parallel_degree"], "parallelism.virtualPipeline": ["parallelism.pipeline_parallel_schedule"], "parallelism.context": ["parallelism.context_parallel_degree"], "parallelism.expert": ["parallelism.expert_parallel_degree"], "parallelism.expertTensor": ["parallelism.expert_tensor_parallel_degree"], "parallelism.sequence": ["parallelism.enable_sequence_parallel"], "batch.micro": ["training.local_batch_size", "parallelism.pipeline_parallel_microbatch_size", "training.num_tokens_per_microbatch_per_dp_rank", "parallelism.num_pp_microbatches"], "batch.global": ["training.global_batch_size", "training.num_tokens_per_train_step"], "sequenceLength": ["training.seq_len", "training.max_context_length"], "precision": ["training.mixed_precision_param"], "recompute": ["activation_checkpoint.mode"], "steps": ["training.steps"], "optimizer.learningRate": ["optimizer.lr", "optimizer.param_groups.0.optimizer_kwargs.lr"], "optimizer.minLearningRate": ["lr_scheduler.min_lr_factor"], "optimizer.warmupSteps": ["lr_scheduler.warmup_steps"], "optimizer.decay": ["lr_scheduler.decay_type"], "optimizer.weightDecay": ["optimizer.weight_decay", "optimizer.param_groups.0.optimizer_kwargs.weight_decay"], "optimizer.clipGradient": ["training.max_norm"], "evaluation.interval": ["validation.freq", "validator.freq"], "evaluation.batches": ["validation.enable", "validation.steps", "validator.enable", "validator.steps"], "tokenizer.path": ["model.hf_assets_path", "hf_assets_path"], "checkpoint.enabled": ["checkpoint.enable", "checkpoint.folder", "checkpoint.load_only"], "checkpoint.interval": ["checkpoint.interval"], "checkpoint.from": ["checkpoint.initial_load_path", "checkpoint.initial_load_in_hf"], "wandb.project": ["metrics.enable_wandb"], "launchers.torchtitan.recipe": ["model.name", "model.flavor"], "launchers.torchtitan.dataset": ["training.dataset", "dataloader.dataset", "validation.dataset", "validator.dataloader.dataset"], "launchers.torchtitan.datasetPath": ["training.dataset_path", "dataloader.dataset_path", "validation.dataset_path", "validator.dataloader.dataset_path"]}
  defaults: {}
  stepLine: {"find": ["step: *(?P<step>[0-9]+) ", "loss: *(?P<loss>[0-9][0-9.e+-]*|nan|inf)", "grad_norm: ", "tps: *(?P<tokens>[0-9,.]+)"]}
  ownModel: recipe
torchrun:
  task: train
  processes: gpu
  program: ""
  sameAs: megatron-lm
  precisions: ["bf16", "fp16", "fp32", "fp8", "mxfp8", "nvfp4"]
  owns: {"checkpoint.enabled": [], "wandb.project": [], "mlflow.experiment": []}
  defaults: {}
  ownModel: program
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
  sameAs: megatron-lm
  precisions: []
  owns: {}
  defaults: {}
{{- end }}

{{/* Release of NVIDIA's NeMo image as a number, such as 2606; launchers.<name>.release where the image is another; 0 = unknown. */}}
{{- define "gke-a3mega.imageRelease" -}}
{{- $tag := regexFind "(^|/)nvidia/nemo:[0-9]{2}[.][0-9]{2}([^0-9]|$)" ((include "gke-a3mega.launcher" . | fromJson).image | default "") }}
{{- $release := (get .Values.launchers .Values.launcher).release | default (regexFind "[0-9]{2}[.][0-9]{2}" $tag) }}
{{- replace "." "" $release | default "0" }}
{{- end }}

{{/* The chosen launcher, as JSON; its values win over its defaults. The root keeps it: Helm takes long to parse the list. */}}
{{- define "gke-a3mega.launcher" -}}
{{- if not .launcher }}
{{- $launcher := get (include "gke-a3mega.launchers" . | fromYaml) .Values.launcher }}
{{- range $key, $value := get .Values.launchers .Values.launcher }}
{{- if $value }}{{ $_ := set $launcher $key $value }}{{ end }}
{{- end }}
{{- if not $launcher.image }}
{{- with $launcher.sameAs }}
{{- $_ := set $launcher "image" ((get $.Values.launchers .).image | default (get (include "gke-a3mega.launchers" $ | fromYaml) .).image) }}
{{- end }}
{{- end }}
{{- $_ := set . "launcher" (toJson $launcher) }}
{{- end }}
{{- .launcher }}
{{- end }}
