{{/*
automodel: NeMo AutoModel pretraining and fine-tuning of Hugging Face models, with FSDP and further parallelism of PyTorch.
What the templates of a run include by these names; empty = this launcher needs none.
*/}}
{{- define "aks-nd.launcher.automodel.config" }}
{{- $own := get .Values.launchers "automodel" }}
{{- $p := .Values.parallelism }}
{{- $pipelines := gt (int64 $p.pipeline) 1 }}
{{- $global := .Run.globalBatch }}
{{- $micro := int64 .Values.batch.micro }}
{{- $microBatches := div $global (max 1 (mul $micro .Run.dataParallel)) }}
{{- /* A pipeline gets all micro-batches of a step at once, and cuts them itself. */}}
{{- $local := $pipelines | ternary (mul $micro $microBatches) $micro }}
{{- $evaluates := gt (int64 .Values.evaluation.batches) 0 }}
{{- $data := include "aks-nd.dataPrefixes" . | fromYamlArray }}
{{- $lora := gt (int64 $own.loraRank) 0 }}
{{- $fp32 := eq .Values.precision "fp32" }}
{{- $warmup := include "aks-nd.setting" (list . "optimizer.warmupSteps") }}
recipe: TrainFinetuneRecipeForNextTokenPrediction
model:
{{- if .Values.checkpoint.from }}
  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained
  pretrained_model_name_or_path: {{ quote $own.model }}
{{- else }}
  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_config
  config:
    _target_: transformers.AutoConfig.from_pretrained
    pretrained_model_name_or_path: {{ quote $own.model }}
{{- end }}
{{- if or $fp32 (not $lora) }}
  # FSDP computes in BF16 by default; AdamW keeps its state in the format of the weights.
  torch_dtype: float32
{{- end }}
{{- if $lora }}
peft:
  _target_: nemo_automodel.components._peft.lora.PeftConfig
  dim: {{ int64 $own.loraRank }}
  target_modules: "*_proj"
{{- end }}
distributed:
  strategy: fsdp2
  tp_size: {{ int64 $p.tensor }}
  pp_size: {{ int64 $p.pipeline }}
  cp_size: {{ int64 $p.context }}
  ep_size: {{ int64 $p.expert }}
  sequence_parallel: {{ $p.sequence }}
  {{- $recompute := include "aks-nd.recompute" . | fromYaml }}
  activation_checkpointing: {{ get (dict "none" false "full" true "selective" "selective") $recompute.granularity }}
{{- if $fp32 }}
  mp_policy:
    _target_: torch.distributed.fsdp.MixedPrecisionPolicy
    param_dtype: float32
{{- end }}
{{- if $pipelines }}
  pipeline:
    # Of the schedule with several chunks of layers, AutoModel gives a stage two where nothing else is set.
    pp_schedule: {{ eq (int64 $p.virtualPipeline) 1 | ternary "1f1b" "interleaved1f1b" }}
    pp_microbatch_size: {{ $micro }}
    pp_batch_size: {{ $local }}
{{- if not $own.dataset }}
    pp_seq_len: {{ int64 .Values.sequenceLength }}
{{- end }}
{{- end }}
step_scheduler:
  global_batch_size: {{ $global }}
  local_batch_size: {{ $local }}
{{- if .Values.steps }}
  max_steps: {{ int64 .Values.steps }}
  # As many as the steps take; by default 10.
  num_epochs: null
{{- end }}
  ckpt_every_steps: {{ int64 .Values.checkpoint.interval }}
  save_checkpoint_every_epoch: false
  # Asked for even where nothing is evaluated: Megatron's data of 0.5 divides by it.
  val_every_steps: {{ int64 .Values.evaluation.interval }}
checkpoint:
  enabled: {{ .Values.checkpoint.enabled }}
  # The logs of a run without checkpoints go there too.
  checkpoint_dir: {{ .Values.checkpoint.enabled | ternary (printf "%s/checkpoints" .Run.home) .Run.directory | quote }}
{{- if not .Values.checkpoint.from }}
  # As AutoModel's examples of pretraining; the last checkpoint of other runs has a copy for Hugging Face.
  model_save_format: torch_save
  save_consolidated: false
{{- end }}
{{- range $section, $batches := dict "dataset" 0 "validation_dataset" (int64 .Values.evaluation.batches) }}
{{- $trains := eq $section "dataset" }}
{{- if or $trains $evaluates }}
{{ $section }}:
{{- if $own.dataset }}
  {{- toYaml ($trains | ternary $own.dataset $own.validationDataset) | nindent 2 }}
{{- else if $data }}
  _target_: nemo_automodel.components.datasets.llm.megatron_dataset.MegatronPretraining
  # weight, path, weight, path, ...; a single path has no weight
  paths:
    {{- range $data }}
    {{- if gt (len $data) 1 }}
    - {{ quote .weight }}
    {{- end }}
    - {{ quote .path }}
    {{- end }}
  index_mapping_dir: {{ include "aks-nd.dataCache" $ | quote }}
  seq_length: {{ int64 $.Values.sequenceLength }}
  split: {{ $evaluates | ternary $.Values.data.split "100,0,0" | quote }}
  splits_to_build: {{ $trains | ternary "train" "validation" }}
  tokenizer:
    _target_: nemo_automodel._transformers.auto_tokenizer.NeMoAutoTokenizer.from_pretrained
    pretrained_model_name_or_path: {{ quote $.Values.tokenizer.path }}
{{- if not $trains }}
  num_val_samples: {{ mul $batches $global }}
{{- end }}
{{- else }}
  # It makes whole batches by itself.
  _target_: nemo_automodel.components.datasets.llm.mock_iterable_dataset.MockIterableDataset
  seq_len: {{ int64 $.Values.sequenceLength }}
  batch_size: {{ $local }}
{{- if not $trains }}
  num_samples: {{ mul $batches ($pipelines | ternary 1 $microBatches) }}
{{- end }}
{{- end }}
{{ $trains | ternary "" "validation_" }}dataloader:
  _target_: torchdata.stateful_dataloader.StatefulDataLoader
{{- if $own.dataset }}
  collate_fn: nemo_automodel.components.datasets.utils.default_collater
{{- else if $data }}
  collate_fn: torch.utils.data.default_collate
  dataloader_type: single
{{- else }}
  batch_size: null
{{- end }}
{{- end }}
{{- end }}
loss_fn:
  _target_: nemo_automodel.components.loss.masked_ce.MaskedCrossEntropy
optimizer:
  _target_: torch.optim.AdamW
  lr: {{ include "aks-nd.setting" (list . "optimizer.learningRate") }}
  betas: [0.9, 0.95]
  weight_decay: {{ include "aks-nd.setting" (list . "optimizer.weightDecay") }}
clip_grad_norm:
  max_norm: {{ include "aks-nd.setting" (list . "optimizer.clipGradient") }}
lr_scheduler:
  lr_decay_style: {{ include "aks-nd.setting" (list . "optimizer.decay") }}
{{- with include "aks-nd.setting" (list . "optimizer.minLearningRate") }}
  min_lr: {{ . }}
{{- end }}
{{- if ne $warmup "" }}
  lr_warmup_steps: {{ $warmup }}
{{- if and .Values.steps (ge (int64 $warmup) (int64 .Values.steps)) }}
  # AutoModel wants the warm-up to end before the decay does, also in a run that ends before either.
  lr_decay_steps: {{ add1 $warmup }}
{{- end }}
{{- end }}
  # By default those of the checkpoint win over changed values.
  use_checkpoint_opt_param_scheduler: false
  override_opt_param_scheduler: true
dist_env:
  # By default 1, in which no large checkpoint is saved.
  timeout_minutes: 30
{{- with .Values.wandb.project }}
wandb:
  project: {{ quote . }}
  name: {{ $.Run.name }}
{{- end }}
{{- with .Values.mlflow.experiment }}
mlflow:
  experiment_name: {{ quote . }}
  run_name: {{ $.Run.name }}
{{- end }}
{{- end }}
{{- define "aks-nd.launcher.automodel.args" }}
- /etc/chartgen/automodel.yaml
{{- end }}
{{- define "aks-nd.launcher.automodel.env" }}
- name: PYTORCH_CUDA_ALLOC_CONF
  value: expandable_segments:True
# Model, tokenizer and weights are in the storage: a rank that lacks one stops, instead of all of them fetching it.
- name: HF_HUB_OFFLINE
  value: "1"
# A bar writes into the lines of the steps.
- name: TQDM_DISABLE
  value: "1"
{{- end }}
{{- define "aks-nd.launcher.automodel.mounts" }}{{ end }}
{{- define "aks-nd.launcher.automodel.files" }}
{{- $config := deepCopy .Run.config }}
{{- range $path, $value := include "aks-nd.leaves" (list (get .Values.launchers "automodel").config "") | fromYaml }}
{{- $steps := splitList "." $path }}
{{- $section := $config }}
{{- range initial $steps }}
{{- if not (kindIs "map" (get $section .)) }}{{ $_ := set $section . dict }}{{ end }}
{{- $section = get $section . }}
{{- end }}
{{- $_ := set $section (last $steps) $value }}
{{- end }}
automodel.yaml: {{ toYaml $config | toJson }}
{{- end }}
{{- define "aks-nd.launcher.automodel.beforeLaunch" }}{{ end }}
{{- define "aks-nd.launcher.automodel.launch" }}{{ end }}
{{- define "aks-nd.launcher.automodel.beforeRank" }}
{{- if .Values.checkpoint.enabled }}
# A save that was interrupted leaves its directory, without the settings that are written last. AutoModel 0.5 would stop
# when it comes to that step again, and without LATEST it would resume from there.
if ((RANK == 0)); then
  latest=$(readlink "$CHECKPOINT_DIRECTORY/LATEST" || cat "$CHECKPOINT_DIRECTORY/LATEST.txt" 2>/dev/null || true)
  latest=${latest##*_}
  for folder in "$CHECKPOINT_DIRECTORY"/epoch_*; do
    if [[ $folder =~ /epoch_[0-9]+_step_([0-9]+)$ ]] &&
      [[ ! -e $folder/config.yaml || ${BASH_REMATCH[1]} -gt ${latest:-${BASH_REMATCH[1]}} ]]; then
      echo "chartgen: $folder was not completed; it moves to $CHECKPOINT_DIRECTORY/unfinished"
      rm -rf "$CHECKPOINT_DIRECTORY/unfinished/${folder##*/}"
      mkdir -p "$CHECKPOINT_DIRECTORY/unfinished"
      mv "$folder" "$CHECKPOINT_DIRECTORY/unfinished"
    fi
  done
fi
{{- end }}
{{- end }}
{{- define "aks-nd.launcher.automodel.programs" }}{{ end }}
