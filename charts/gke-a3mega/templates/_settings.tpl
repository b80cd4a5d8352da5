{{/* Machine types: what one machine of each offers. */}}
{{- define "gke-a3mega.machines" -}}
a3-megagpu-8g:
  gpus: 8
  gpu: h100-80gb
  capacity: {"nvidia.com/gpu": "8", "cpu": "208", "memory": "1872Gi", "ephemeral-storage": "6Ti"}
{{- end }}

{{/* Launchers: what each does, starts and can train in. */}}
{{- define "gke-a3mega.launchers" -}}
nemo-1:
  task: train
  program: "/opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py"
  image: "nvcr.io/nvidia/nemo:24.07"
  precisions: ["bf16", "fp16", "fp32", "fp8"]
  owns: {"nodes": "trainer.num_nodes", "gpusPerNode": "trainer.devices", "precision": "trainer.precision", "steps": "trainer.max_steps", "evaluation.interval": "trainer.val_check_interval", "evaluation.batches": "trainer.limit_val_batches", "batch.micro": "model.micro_batch_size", "batch.global": "model.global_batch_size", "parallelism.tensor": "model.tensor_model_parallel_size", "parallelism.pipeline": "model.pipeline_model_parallel_size", "parallelism.virtualPipeline": "model.virtual_pipeline_model_parallel_size", "parallelism.context": "model.context_parallel_size", "parallelism.expert": "model.expert_model_parallel_size", "parallelism.sequence": "model.sequence_parallel", "parallelism.distributedOptimizer": "model.optim.name", "sequenceLength": "model.encoder_seq_length", "model.layers": "model.num_layers", "model.hiddenSize": "model.hidden_size", "model.ffnHiddenSize": "model.ffn_hidden_size", "model.attentionHeads": "model.num_attention_heads", "model.queryGroups": "model.num_query_groups", "model.experts": "model.num_moe_experts", "model.expertsPerToken": "model.moe_router_topk", "recompute": "model.activations_checkpoint_granularity", "tokenizer.path": "model.tokenizer", "data.prefixes": "model.data.data_prefix", "data.split": "model.data.splits_string", "checkpoint.enabled": "exp_manager.create_checkpoint_callback", "checkpoint.interval": "exp_manager.checkpoint_callback_params.every_n_train_steps", "checkpoint.from": "restore_from_path", "run.name": "exp_manager.explicit_log_dir", "profile.enabled": "model.nsys_profile.enabled", "profile.startStep": "model.nsys_profile.start_step", "profile.endStep": "model.nsys_profile.end_step", "profile.ranks": "model.nsys_profile.ranks"}
{{- end }}

{{/* The chosen launcher, as YAML; its values win over its defaults. */}}
{{- define "gke-a3mega.launcher" -}}
{{- $launcher := get (include "gke-a3mega.launchers" . | fromYaml) .Values.launcher }}
{{- range $key, $value := get .Values.launchers .Values.launcher }}
{{- if $value }}{{ $_ := set $launcher $key $value }}{{ end }}
{{- end }}
{{- toYaml $launcher }}
{{- end }}

{{/* Whether the run uses GPUs: "true" or nothing. */}}
{{- define "gke-a3mega.gpu" -}}
{{- if ne (include "gke-a3mega.launcher" . | fromYaml).task "data" }}true{{ end }}
{{- end }}

{{/* GPUs of each machine that the run uses: those asked for, or all. */}}
{{- define "gke-a3mega.gpusPerNode" -}}
{{- $machine := get (include "gke-a3mega.machines" . | fromYaml) .Values.machineType }}
{{- .Values.gpusPerNode | default $machine.gpus | int64 }}
{{- end }}

{{/* Processes of the run, one for each GPU. */}}
{{- define "gke-a3mega.worldSize" -}}
{{- mul (include "gke-a3mega.gpusPerNode" . | int64) .Values.nodes }}
{{- end }}

{{/* Copies of the model that train side by side; cut to a whole number. */}}
{{- define "gke-a3mega.dataParallel" -}}
{{- $p := .Values.parallelism }}
{{- div (include "gke-a3mega.worldSize" . | int64) (mul $p.tensor $p.pipeline $p.context) | max 1 }}
{{- end }}

{{/* Samples of one step; "2/gpu" grows with the run. */}}
{{- define "gke-a3mega.globalBatch" -}}
{{- $global := .Values.batch.global }}
{{- if kindIs "string" $global }}
{{- mul (trimSuffix "/gpu" $global | int64) (include "gke-a3mega.worldSize" . | int64) }}
{{- else }}
{{- int64 $global }}
{{- end }}
{{- end }}

{{/* Data sets that training reads, as a list of {path, weight}; empty = mock data. */}}
{{- define "gke-a3mega.dataPrefixes" -}}
{{- $data := .Values.data }}
{{- $prefixes := list }}
{{- range $data.prefixes }}
{{- $entry := kindIs "map" . | ternary . (dict "path" .) }}
{{- $path := hasPrefix "/" $entry.path | ternary $entry.path (printf "%s/%s" $data.directory $entry.path) }}
{{- $prefixes = append $prefixes (dict "path" $path "weight" ($entry.weight | default 1.0)) }}
{{- end }}
{{- if and $data.name (not $data.shards) }}
{{- $prefixes = append $prefixes (dict "path" (printf "%s/%s_text_document" $data.directory $data.name) "weight" 1.0) }}
{{- else if $data.name }}
{{- range $shard := until (int $data.shards) }}
{{- $prefixes = append $prefixes (dict "path" (printf "%s/%s_%02d_text_document" $data.directory $data.name $shard) "weight" 1.0) }}
{{- end }}
{{- end }}
{{- toYaml $prefixes }}
{{- end }}
