{{/* Refuses values that cannot run, all reasons at once. The limits are those of Megatron's own start-up checks. */}}
{{- define "nebius.validate" -}}
{{- $v := .Values }}
{{- $fact := dict }}
{{- include "nebius.facts" (list . $fact) }}
{{- $problems := list }}
{{- if eq $fact.launcher.task "train" "test" }}
{{- if gt $fact.gpusPerNode $fact.machine.gpus }}
{{- $problems = append $problems (printf "gpusPerNode: %d is more than the %d GPUs of %s; raise nodes instead" $fact.gpusPerNode $fact.machine.gpus
  $fact.machine.name) }}{{- end }}
{{- end }}
{{- if eq $fact.launcher.task "train" }}
{{- if ne (mod $fact.world $fact.modelParallel) 0 }}
{{- $problems = append $problems (printf "nodes: %d GPUs (%d machines x %d) cannot be divided by tensor %d x pipeline %d x context %d = %d; use %s machines"
  $fact.world (int64 $v.nodes) $fact.gpusPerNode (int64 $v.parallelism.tensor) (int64 $v.parallelism.pipeline) (int64 $v.parallelism.context)
  $fact.modelParallel (include "nebius.multiples" (list (max (div $fact.modelParallel (include "nebius.gcd" (list $fact.modelParallel $fact.gpusPerNode) |
  int64)) 1) (int64 $v.nodes)))) }}{{- end }}
{{- if and (eq (mod $fact.world $fact.modelParallel) 0) (ne (mod $fact.globalBatch (max 1 (mul (int64 $v.batch.micro) $fact.dataParallel))) 0) }}
{{- $problems = append $problems (printf "batch.global: %d is not divisible by micro batch %d x data parallel %d = %d; nearest: %s" $fact.globalBatch
  (int64 $v.batch.micro) $fact.dataParallel (mul (int64 $v.batch.micro) $fact.dataParallel) (include "nebius.multiples" (list (mul (int64 $v.batch.micro)
  $fact.dataParallel) $fact.globalBatch))) }}{{- end }}
{{- if and (and (eq (mod $fact.world $fact.modelParallel) 0) (eq (mod $fact.globalBatch (max 1 (mul (int64 $v.batch.micro) $fact.dataParallel))) 0)
  (gt (int64 $v.parallelism.virtualPipeline) 1)) (ne (mod $fact.microBatches (int64 $v.parallelism.pipeline)) 0) }}
{{- $problems = append $problems (printf "batch.global: %d gives %d micro-batches, which pipeline %d cannot interleave; use a multiple of %d" $fact.globalBatch
  $fact.microBatches (int64 $v.parallelism.pipeline) (mul (mul (int64 $v.batch.micro) $fact.dataParallel) (int64 $v.parallelism.pipeline))) }}{{- end }}
{{- end }}
{{- if and (eq $fact.launcher.task "train") $fact.describesModel }}
{{- if and (not $fact.stageOption) (ne (mod $fact.pipelineLayers (int64 $v.parallelism.pipeline)) 0) }}
{{- $problems = append $problems (printf "parallelism.pipeline: %d layers cannot be divided by pipeline %d x virtual %d; pipeline %d would fit"
  $fact.pipelineLayers (int64 $v.parallelism.pipeline) (int64 $v.parallelism.virtualPipeline) (include "nebius.nearest" (list (max (div $fact.pipelineLayers
  (ternary (int64 $v.parallelism.virtualPipeline) 1 (not (not (eq (mod $fact.pipelineLayers (int64 $v.parallelism.virtualPipeline)) 0))))) 1)
  (int64 $v.parallelism.pipeline)) | int64)) }}{{- end }}
{{- if and (and (not $fact.stageOption) (eq (mod $fact.pipelineLayers (int64 $v.parallelism.pipeline)) 0)) (ne (mod (div $fact.pipelineLayers
  (int64 $v.parallelism.pipeline)) (int64 $v.parallelism.virtualPipeline)) 0) }}
{{- $problems = append $problems (printf "parallelism.virtualPipeline: %d layers cannot be divided by pipeline %d x virtual %d; %d would fit"
  $fact.pipelineLayers (int64 $v.parallelism.pipeline) (int64 $v.parallelism.virtualPipeline) (include "nebius.nearest" (list (max (div $fact.pipelineLayers
  (int64 $v.parallelism.pipeline)) 1) (int64 $v.parallelism.virtualPipeline)) | int64)) }}{{- end }}
{{- if and (and $fact.stageOption (gt $fact.otherStages 0) (gt $fact.pipelineLayers $fact.otherStages)) (not (and (ge $fact.otherLayers $fact.otherStages)
  (eq (mod $fact.otherLayers (max $fact.otherStages 1)) 0))) }}
{{- $problems = append $problems (printf "launchers.%s.config.%s: %d of %d layers leave %d for %d other stages of pipeline %d; give them %d layers in all"
  $v.launcher $fact.stageOption $fact.ownLayers $fact.pipelineLayers $fact.otherLayers $fact.otherStages (int64 $v.parallelism.pipeline)
  (sub $fact.pipelineLayers (mul (min (max (div (add $fact.otherLayers (div $fact.otherStages 2)) (max $fact.otherStages 1)) 1) (div (sub $fact.pipelineLayers
  1) (max $fact.otherStages 1))) $fact.otherStages))) }}{{- end }}
{{- if and (and $fact.stageOption (not (and (gt $fact.otherStages 0) (gt $fact.pipelineLayers $fact.otherStages)))) (not (and (eq $fact.otherStages 0)
  (eq $fact.otherLayers 0))) }}
{{- $problems = append $problems (printf "launchers.%s.config.%s: %d of %d layers leave %d for %d other stages of pipeline %d; remove it" $v.launcher
  $fact.stageOption $fact.ownLayers $fact.pipelineLayers $fact.otherLayers $fact.otherStages (int64 $v.parallelism.pipeline)) }}{{- end }}
{{- if and (and (ge $fact.otherLayers $fact.otherStages) (ternary (eq (mod $fact.otherLayers (max $fact.otherStages 1)) 0) (and (eq $fact.otherStages 0)
  (eq $fact.otherLayers 0)) (not (not (gt $fact.otherStages 0))))) (ne (mod $fact.stageUnit (int64 $v.parallelism.virtualPipeline)) 0) }}
{{- $problems = append $problems (printf "parallelism.virtualPipeline: stages of %s layers cannot all be divided by %d; use 1" (join ", " $fact.stageSizes)
  (int64 $v.parallelism.virtualPipeline)) }}{{- end }}
{{- end }}
{{- if eq $fact.launcher.task "train" }}
{{- if not (or (eq (int64 $v.parallelism.virtualPipeline) 1) (gt (int64 $v.parallelism.pipeline) 1)) }}
{{- $problems = append $problems "parallelism.virtualPipeline: needs pipeline above 1; use 1" }}{{- end }}
{{- end }}
{{- if and (eq $fact.launcher.task "train") $fact.describesModel }}
{{- if ne (mod (int64 $v.model.attentionHeads) (int64 $v.parallelism.tensor)) 0 }}
{{- $problems = append $problems (printf "parallelism.tensor: %d heads cannot be divided by tensor %d; use %d" (int64 $v.model.attentionHeads)
  (int64 $v.parallelism.tensor) (include "nebius.divisor" (list (int64 $v.model.attentionHeads) (int64 $v.parallelism.tensor)) | int64)) }}{{- end }}
{{- if ne (mod (int64 $v.model.hiddenSize) (int64 $v.model.attentionHeads)) 0 }}
{{- $problems = append $problems (printf "model.hiddenSize: %d cannot be divided by %d attention heads; %d heads would fit" (int64 $v.model.hiddenSize)
  (int64 $v.model.attentionHeads) (include "nebius.nearest" (list (int64 $v.model.hiddenSize) (int64 $v.model.attentionHeads)) | int64)) }}{{- end }}
{{- if ne (mod (int64 $v.model.attentionHeads) $fact.queryGroups) 0 }}
{{- $problems = append $problems (printf "model.queryGroups: %d key and value heads do not divide %d attention heads; use a divisor" $fact.queryGroups
  (int64 $v.model.attentionHeads)) }}{{- end }}
{{- if and (and (eq (mod (int64 $v.model.attentionHeads) $fact.queryGroups) 0) (ne $fact.queryGroups (int64 $v.model.attentionHeads)))
  (not (or (eq (mod $fact.queryGroups (int64 $v.parallelism.tensor)) 0) (eq (mod (int64 $v.parallelism.tensor) $fact.queryGroups) 0))) }}
{{- $problems = append $problems (printf "parallelism.tensor: %d key and value heads are neither a multiple nor a divisor of tensor %d; use %d"
  $fact.queryGroups (int64 $v.parallelism.tensor) (include "nebius.divisor" (list $fact.queryGroups (int64 $v.parallelism.tensor)) | int64)) }}{{- end }}
{{- if ne (mod (int64 $v.model.hiddenSize) (int64 $v.parallelism.tensor)) 0 }}
{{- $problems = append $problems (printf "parallelism.tensor: hiddenSize %d cannot be divided by tensor %d; use %d" (int64 $v.model.hiddenSize)
  (int64 $v.parallelism.tensor) (include "nebius.divisor" (list (int64 $v.model.hiddenSize) (int64 $v.parallelism.tensor)) | int64)) }}{{- end }}
{{- if ne (mod $fact.ffnHiddenSize (ternary $fact.expertTensor (int64 $v.parallelism.tensor) (not (not $v.model.experts)))) 0 }}
{{- $problems = append $problems (printf "parallelism.%s: ffnHiddenSize %d cannot be divided by tensor %d; use %d" (ternary "expertTensor" "tensor"
  (not (not $v.model.experts))) $fact.ffnHiddenSize (ternary $fact.expertTensor (int64 $v.parallelism.tensor) (not (not $v.model.experts)))
  (include "nebius.divisor" (list $fact.ffnHiddenSize (ternary $fact.expertTensor (int64 $v.parallelism.tensor) (not (not $v.model.experts)))) | int64)) }}{{-
  end }}
{{- if and (gt (int64 $v.parallelism.context) 1) (ne (mod (int64 $v.sequenceLength) (max 1 (mul 2 (int64 $v.parallelism.context)))) 0) }}
{{- $problems = append $problems (printf "sequenceLength: %d cannot be divided by 2 x context %d; use a multiple of %d" (int64 $v.sequenceLength)
  (int64 $v.parallelism.context) (mul 2 (int64 $v.parallelism.context))) }}{{- end }}
{{- if and (and $v.parallelism.sequence (or (eq (int64 $v.parallelism.context) 1) (eq (mod (int64 $v.sequenceLength) (max 1 (mul 2
  (int64 $v.parallelism.context)))) 0))) (ne (mod (div (int64 $v.sequenceLength) (int64 $v.parallelism.context)) (int64 $v.parallelism.tensor)) 0) }}
{{- $problems = append $problems (printf "sequenceLength: %d tokens on context %d cannot be divided by tensor %d; use a multiple of %d"
  (int64 $v.sequenceLength) (int64 $v.parallelism.context) (int64 $v.parallelism.tensor) (mul (int64 $v.parallelism.context) (int64 $v.parallelism.tensor)))
  }}{{- end }}
{{- end }}
{{- if eq $fact.launcher.task "train" }}
{{- if and $v.parallelism.sequence (le (int64 $v.parallelism.tensor) 1) }}
{{- $problems = append $problems "parallelism.sequence: needs tensor above 1; use false" }}{{- end }}
{{- end }}
{{- if and (eq $fact.launcher.task "train") $fact.describesModel }}
{{- if and (gt (int64 $v.parallelism.expert) 1) (not $v.model.experts) }}
{{- $problems = append $problems "parallelism.expert: needs model.experts; use 1" }}{{- end }}
{{- if and $v.model.experts (ne (mod (int64 $v.model.experts) (int64 $v.parallelism.expert)) 0) }}
{{- $problems = append $problems (printf "parallelism.expert: %d does not divide %d experts; use a divisor of %d" (int64 $v.parallelism.expert)
  (int64 $v.model.experts) (int64 $v.model.experts)) }}{{- end }}
{{- if and (ne $fact.expertTensor (int64 $v.parallelism.tensor)) (not $v.model.experts) }}
{{- $problems = append $problems "parallelism.expertTensor: needs model.experts; use null" }}{{- end }}
{{- if and $v.model.experts (gt (int64 $v.model.expertsPerToken) (int64 $v.model.experts)) }}
{{- $problems = append $problems (printf "model.expertsPerToken: %d is more than the %d experts of a layer; use %d or less" (int64 $v.model.expertsPerToken)
  (int64 $v.model.experts) (int64 $v.model.experts)) }}{{- end }}
{{- end }}
{{- if eq $fact.launcher.task "train" }}
{{- if and (and (gt (int64 $v.parallelism.expert) 1) (eq (mod $fact.world $fact.modelParallel) 0) (eq (mod $fact.world (max 1 (mul $fact.expertTensor
  (int64 $v.parallelism.pipeline)))) 0)) (ne (mod $fact.world $fact.expertParallel) 0) }}
{{- $problems = append $problems (printf "parallelism.expert: %d x expert tensor %d x pipeline %d = %d does not divide %d GPUs; use %d"
  (int64 $v.parallelism.expert) $fact.expertTensor (int64 $v.parallelism.pipeline) $fact.expertParallel $fact.world (include "nebius.divisor"
  (list (include "nebius.gcd" (list (max (div $fact.world (max 1 (mul $fact.expertTensor (int64 $v.parallelism.pipeline)))) 1)
  (ternary (max (int64 $v.model.experts) 1) $fact.world (not (not $v.model.experts)))) | int64) (max (sub (int64 $v.parallelism.expert) 1) 1)) | int64)) }}{{-
  end }}
{{- if and (and (or (gt (int64 $v.parallelism.expert) 1) (ne $fact.expertTensor (int64 $v.parallelism.tensor))) (eq (mod $fact.world $fact.modelParallel) 0)
  (gt (mod $fact.world (max 1 (mul $fact.expertTensor (int64 $v.parallelism.pipeline)))) 0)) (not false) }}
{{- $problems = append $problems (printf "parallelism.expert: %d x expert tensor %d x pipeline %d = %d does not divide %d GPUs; use a multiple of %d GPUs"
  (int64 $v.parallelism.expert) $fact.expertTensor (int64 $v.parallelism.pipeline) $fact.expertParallel $fact.world $fact.expertParallel) }}{{- end }}
{{- if and (ne $fact.expertTensor (int64 $v.parallelism.tensor)) (not (hasKey $fact.launcher.owns "parallelism.expertTensor")) }}
{{- $problems = append $problems (printf "parallelism.expertTensor: launcher %s has no option for it; use null" $v.launcher) }}{{- end }}
{{- end }}
{{- if and (eq $fact.launcher.task "train") $fact.describesModel }}
{{- if and (and $v.model.experts (gt (int64 $v.parallelism.tensor) 1)) (not $v.parallelism.sequence) }}
{{- $problems = append $problems "parallelism.sequence: a model with experts needs it when tensor is above 1; use true" }}{{- end }}
{{- end }}
{{- if eq $fact.launcher.task "train" }}
{{- if not (has $v.precision $fact.launcher.precisions) }}
{{- $problems = append $problems (printf "precision: %s cannot be trained with launcher %s; use %s" $v.precision $v.launcher (join ", "
  $fact.launcher.precisions)) }}{{- end }}
{{- end }}
{{- if and (eq $fact.launcher.task "train") $fact.describesModel }}
{{- if and (and (eq $v.precision "fp8" "mxfp8" "nvfp4") (eq (mod (mul (int64 $v.sequenceLength) (int64 $v.batch.micro)) (max 1
  (mul (int64 $v.parallelism.context) (ternary (int64 $v.parallelism.tensor) 1 (not (not $v.parallelism.sequence)))))) 0))
  (ne (mod (div (mul (int64 $v.sequenceLength) (int64 $v.batch.micro)) (max 1 (mul (int64 $v.parallelism.context) (ternary (int64 $v.parallelism.tensor) 1
  (not (not $v.parallelism.sequence)))))) (ternary 32 (ternary 16 8 (not (not (eq $v.precision "nvfp4")))) (not (not (eq $v.precision "mxfp8"))))) 0) }}
{{- $problems = append $problems (printf "sequenceLength: %d tokens on a GPU are not a multiple of %d, which %s needs; use a multiple of %d"
  (div (mul (int64 $v.sequenceLength) (int64 $v.batch.micro)) (max 1 (mul (int64 $v.parallelism.context) (ternary (int64 $v.parallelism.tensor) 1
  (not (not $v.parallelism.sequence)))))) (ternary 32 (ternary 16 8 (not (not (eq $v.precision "nvfp4")))) (not (not (eq $v.precision "mxfp8")))) $v.precision
  (mul (mul (ternary 32 (ternary 16 8 (not (not (eq $v.precision "nvfp4")))) (not (not (eq $v.precision "mxfp8")))) (int64 $v.parallelism.context))
  (ternary (int64 $v.parallelism.tensor) 1 (not (not $v.parallelism.sequence))))) }}{{- end }}
{{- if and (eq $v.precision "fp8" "mxfp8" "nvfp4") (ne (mod (int64 $v.model.hiddenSize) (ternary 32 16 (not (not (eq $v.precision "mxfp8"))))) 0) }}
{{- $problems = append $problems (printf "model.hiddenSize: %d on a GPU is not a multiple of %d, which %s needs; use a multiple of %d"
  (int64 $v.model.hiddenSize) (ternary 32 16 (not (not (eq $v.precision "mxfp8")))) $v.precision (ternary 32 16 (not (not (eq $v.precision "mxfp8"))))) }}{{-
  end }}
{{- if and (and (eq $v.precision "fp8" "mxfp8" "nvfp4") (eq (mod $fact.ffnHiddenSize (ternary $fact.expertTensor (int64 $v.parallelism.tensor)
  (not (not $v.model.experts)))) 0)) (ne (mod (div $fact.ffnHiddenSize (ternary $fact.expertTensor (int64 $v.parallelism.tensor) (not (not $v.model.experts))))
  (ternary 32 16 (not (not (eq $v.precision "mxfp8"))))) 0) }}
{{- $problems = append $problems (printf "model.ffnHiddenSize: %d on a GPU is not a multiple of %d, which %s needs; use a multiple of %d"
  (div $fact.ffnHiddenSize (ternary $fact.expertTensor (int64 $v.parallelism.tensor) (not (not $v.model.experts)))) (ternary 32 16 (not (not (eq $v.precision
  "mxfp8")))) $v.precision (mul (ternary 32 16 (not (not (eq $v.precision "mxfp8")))) (ternary $fact.expertTensor (int64 $v.parallelism.tensor)
  (not (not $v.model.experts))))) }}{{- end }}
{{- end }}
{{- if eq $fact.launcher.task "train" }}
{{- range $each := $fact.given }}
{{- if not (hasKey $fact.launcher.owns $each) }}
{{- $problems = append $problems (printf "%s: launcher %s has no option for it; use null" $each $v.launcher) }}{{- end }}
{{- end }}
{{- if and (and (not (kindIs "invalid" $fact.learningRate)) (not (kindIs "invalid" $fact.minLearningRate))) (gt (float64 $fact.minLearningRate)
  (float64 $fact.learningRate)) }}
{{- $problems = append $problems (printf "optimizer.minLearningRate: %.6g is above learningRate %.6g; use %.6g, or 0" (float64 $fact.minLearningRate)
  (float64 $fact.learningRate) (float64 (mulf (float64 $fact.learningRate) (divf 1 10)))) }}{{- end }}
{{- end }}
{{- if and (eq $fact.launcher.task "train") $fact.describesModel }}
{{- if and (not (kindIs "invalid" $v.model.rotaryBase)) (eq $v.model.family "gpt") }}
{{- $problems = append $problems "model.rotaryBase: family gpt learns its positions; use null" }}{{- end }}
{{- if and (and (eq $fact.recompute.granularity "full") (eq $fact.recompute.method "uniform") (eq (mod $fact.pipelineLayers (max 1
  (mul (int64 $v.parallelism.pipeline) (int64 $v.parallelism.virtualPipeline)))) 0)) (ne (mod (div $fact.pipelineLayers (max 1
  (mul (int64 $v.parallelism.pipeline) (int64 $v.parallelism.virtualPipeline)))) $fact.recompute.layers) 0) }}
{{- $problems = append $problems (printf "recompute.layers: units of %d layers do not divide a chunk of %d; use %d, or method block" $fact.recompute.layers
  (div $fact.pipelineLayers (max 1 (mul (int64 $v.parallelism.pipeline) (int64 $v.parallelism.virtualPipeline)))) (include "nebius.divisor"
  (list (max (div $fact.pipelineLayers (max 1 (mul (int64 $v.parallelism.pipeline) (int64 $v.parallelism.virtualPipeline)))) 1) $fact.recompute.layers) |
  int64)) }}{{- end }}
{{- end }}
{{- range $each := $fact.overridden }}
{{- if not false }}
{{- $problems = append $problems (printf "launchers.%s.%s: %s is set by %s; set %s, and remove it here" $v.launcher (default "" $each.place) (default ""
  $each.option) (default "" $each.key) (default "" $each.key)) }}{{- end }}
{{- end }}
{{- if not $fact.launcher.image }}
{{- $problems = append $problems (printf "launchers.%s.image: empty, and %s has no public image; set it to your own image" $v.launcher $v.launcher) }}{{- end }}
{{- if eq $fact.launcher.task "train" }}
{{- if and $v.profile.enabled (gt (int64 $v.profile.startStep) (int64 $v.profile.endStep)) }}
{{- $problems = append $problems (printf "profile.startStep: %d is behind endStep %d; use %d or less" (int64 $v.profile.startStep) (int64 $v.profile.endStep)
  (int64 $v.profile.endStep)) }}{{- end }}
{{- if and (and $v.profile.enabled (le (int64 $v.profile.startStep) (int64 $v.profile.endStep)) (gt (int64 $v.steps) 0)) (ge (int64 $v.profile.startStep)
  (int64 $v.steps)) }}
{{- $problems = append $problems (printf "profile.startStep: %d is not among the %d steps of the run, which count from 0; use %d and endStep %d"
  (int64 $v.profile.startStep) (int64 $v.steps) (max (sub (int64 $v.steps) 3) 0) (sub (int64 $v.steps) 1)) }}{{- end }}
{{- range $each := $v.profile.ranks }}
{{- if and $v.profile.enabled (ge (int64 $each) $fact.world) }}
{{- $problems = append $problems (printf "profile.ranks: %d is beyond the %d ranks of the run; use 0 to %d" (int64 $each) $fact.world (sub $fact.world 1)) }}{{-
  end }}
{{- end }}
{{- if and (and (not (kindIs "invalid" $v.run.hangMinutes)) (not (kindIs "invalid" $v.run.deadlineSeconds))) (ge (mul (int64 $v.run.hangMinutes) 60)
  (int64 $v.run.deadlineSeconds)) }}
{{- $problems = append $problems
  (printf (print "run.hangMinutes: %v minutes are not less than the %v seconds of run.deadlineSeconds; use fewer minutes, or null to leave "
  "it to the deadline") (ternary "null" (int64 $v.run.hangMinutes) (kindIs "invalid" $v.run.hangMinutes)) (ternary "null" (int64 $v.run.deadlineSeconds)
  (kindIs "invalid" $v.run.deadlineSeconds))) }}{{- end }}
{{- if and (not (kindIs "invalid" $v.run.metricsPort)) (not $fact.stepPatterns) }}
{{- $problems = append $problems (printf "run.metricsPort: %v, and nothing describes the line of a step of launcher %s; %s" (ternary "null"
  (int64 $v.run.metricsPort) (kindIs "invalid" $v.run.metricsPort)) $v.launcher (ternary "describe it in launchers.torchrun.metrics, or use null" "use null"
  (not (not (eq $v.launcher "torchrun"))))) }}{{- end }}
{{- if and (not (kindIs "invalid" $v.run.metricsPort)) (eq (int64 $v.run.metricsPort) 6002 6003) }}
{{- $problems = append $problems (printf "run.metricsPort: %v is where the ranks meet; use another port, such as 9401" (ternary "null"
  (int64 $v.run.metricsPort) (kindIs "invalid" $v.run.metricsPort))) }}{{- end }}
{{- if and (not (kindIs "invalid" $v.mlflow.experiment)) (not $v.mlflow.uri) }}
{{- $problems = append $problems (printf "mlflow.uri: empty, and MLflow would write %v into the pod; give the address of the server" (ternary "null"
  $v.mlflow.experiment (kindIs "invalid" $v.mlflow.experiment))) }}{{- end }}
{{- if and $v.data.stage (not (or $v.data.name $v.data.prefixes)) }}
{{- $problems = append $problems "data.stage: no data set to copy; name one with data.name or data.prefixes, or use false" }}{{- end }}
{{- if and (and (ne $v.tokenizer.kind "none") (not (and (eq $v.launcher "nemo-1") (eq $v.tokenizer.kind "gpt2")))) (not $v.tokenizer.path) }}
{{- $problems = append $problems (printf "tokenizer.path: empty, and %s needs a directory; set it" $v.tokenizer.kind) }}{{- end }}
{{- end }}
{{- if eq $v.launcher "megatron-lm" }}
{{- range $each := $fact.abbreviated }}
{{- if not false }}
{{- $problems = append $problems (printf "launchers.megatron-lm.%s: '%s' is the beginning of %s, which %s sets; set %s, or write the name in full" (default ""
  $each.place) (default "" $each.name) (default "" $each.option) (default "" $each.key) (default "" $each.key)) }}{{- end }}
{{- end }}
{{- if and (not (kindIs "invalid" $v.optimizer.warmupSteps)) (le (int64 $v.steps) 0) }}
{{- $problems = append $problems (printf (print "optimizer.warmupSteps: %v counts steps, and the run counts samples; use null, and "
  "launchers.megatron-lm.config.lr-warmup-samples") (ternary "null" (int64 $v.optimizer.warmupSteps) (kindIs "invalid" $v.optimizer.warmupSteps))) }}{{- end }}
{{- if and (and (not (kindIs "invalid" $v.optimizer.warmupSteps)) (gt (int64 $v.steps) 0) (gt (include "nebius.wholeNumber" (index $fact.own.config
  "lr-decay-iters") | int64) 0)) (ge (int64 $v.optimizer.warmupSteps) (include "nebius.wholeNumber" (index $fact.own.config "lr-decay-iters") | int64)) }}
{{- $problems = append $problems (printf "optimizer.warmupSteps: %v is not below lr-decay-iters %d; use %d or less" (ternary "null"
  (int64 $v.optimizer.warmupSteps) (kindIs "invalid" $v.optimizer.warmupSteps)) (include "nebius.wholeNumber" (index $fact.own.config "lr-decay-iters") | int64)
  (sub (include "nebius.wholeNumber" (index $fact.own.config "lr-decay-iters") | int64) 1)) }}{{- end }}
{{- if and $v.evaluation.batches (not $fact.evaluationShare) }}
{{- $problems = append $problems (printf "data.split: %s keeps nothing for evaluation; give it a share such as 98,2,0, or evaluation.batches 0" (default ""
  $v.data.split)) }}{{- end }}
{{- range $each := $fact.samples }}
{{- if ne (int64 $v.steps) 0 }}
{{- $problems = append $problems (printf "launchers.megatron-lm.config.%s: %s counts samples, and steps is %d; set steps to 0, or remove it" $each $each
  (int64 $v.steps)) }}{{- end }}
{{- end }}
{{- if and (eq (int64 $v.steps) 0) (not (has "train-samples" $fact.samples)) }}
{{- $problems = append $problems (print "steps: 0 leaves the length to the launcher's configuration, which has no train-samples; set it, or "
  "launchers.megatron-lm.config.train-samples") }}{{- end }}
{{- range $each := $fact.iterations }}
{{- if and (has "train-samples" $fact.samples) (le (int64 $v.steps) 0) }}
{{- $problems = append $problems (printf "launchers.megatron-lm.config.%s: %s counts steps, and the run counts samples; use the option that ends in -samples"
  $each $each) }}{{- end }}
{{- end }}
{{- end }}
{{- if eq $v.launcher "nemo-1" }}
{{- if and (not (kindIs "invalid" $v.optimizer.decay)) (ne (default "" $v.optimizer.decay) "cosine") }}
{{- $problems = append $problems (printf "optimizer.decay: launcher %s has no %v; use cosine, or launcher megatron-lm" $v.launcher (ternary "null"
  $v.optimizer.decay (kindIs "invalid" $v.optimizer.decay))) }}{{- end }}
{{- end }}
{{- if eq $v.launcher "torchrun" }}
{{- if not $fact.own.program }}
{{- $problems = append $problems
  (print "launchers.torchrun.program: empty; give its path in the image, /etc/chartgen/NAME for one of launchers.torchrun.files, " "or -m MODULE") }}{{- end }}
{{- range $each := $fact.unknownNames }}
{{- if not false }}
{{- $problems = append $problems (printf "launchers.torchrun.args: %s is not a name that the chart fills in; use one of %s, or write $%s for the text itself"
  $each (join ", " $fact.knownNames) $each) }}{{- end }}
{{- end }}
{{- if not (and (eq (int64 $v.parallelism.tensor) 1) (eq (int64 $v.parallelism.pipeline) 1) (eq (int64 $v.parallelism.context) 1)
  (eq (int64 $v.parallelism.expert) 1)) }}
{{- $problems = append $problems (printf "parallelism.%s: above 1, which does not reach the program; use 1, and an argument of the program" (ternary "tensor"
  (ternary "pipeline" (ternary "context" "expert" (not (not (gt (int64 $v.parallelism.context) 1)))) (not (not (gt (int64 $v.parallelism.pipeline) 1))))
  (not (not (gt (int64 $v.parallelism.tensor) 1))))) }}{{- end }}
{{- if ne $fact.recompute.granularity "none" }}
{{- $problems = append $problems (printf "recompute: %s does not reach the program; use none, and an argument of the program" $fact.recompute.granularity) }}{{-
  end }}
{{- if $v.profile.enabled }}
{{- $problems = append $problems "profile.enabled: true, and the steps and ranks to record do not reach the program; use false" }}{{- end }}
{{- if and (eq $fact.own.starter "accelerate") (eq $fact.workload "volcano-job" "mpijob") }}
{{- $problems = append $problems "launchers.torchrun.starter: accelerate, and mpirun starts the processes of this chart; use torchrun" }}{{- end }}
{{- if and (and (eq $fact.own.starter "accelerate") (eq $fact.workload "pytorchjob")) (ne (int64 $v.run.maxRestarts) 0) }}
{{- $problems = append $problems (printf "run.maxRestarts: %d, and accelerate does not start processes again; use 0, or starter torchrun"
  (int64 $v.run.maxRestarts)) }}{{- end }}
{{- if and (ne $fact.own.starter "accelerate") $fact.own.starterArgs }}
{{- $problems = append $problems
  (print "launchers.torchrun.starterArgs: are arguments of accelerate, which does not start this run; remove them, or use starter " "accelerate") }}{{- end }}
{{- end }}
{{- if eq $v.launcher "download" }}
{{- if not (or $v.data.source $v.tokenizer.source $v.checkpoint.source $fact.own.models) }}
{{- $problems = append $problems (print "data.source: empty, and download has nothing to fetch; give it, tokenizer.source, checkpoint.source or "
  "launchers.download.models") }}{{- end }}
{{- if and (or (hasPrefix "http://" (default "" $v.data.source)) (hasPrefix "https://" (default "" $v.data.source))) (hasSuffix "/" (default "" $v.data.source))
  }}
{{- $problems = append $problems (printf "data.source: %s is a folder, which https:// cannot list; use the address of a file, or hf:// or gs:// for a folder"
  (default "" $v.data.source)) }}{{- end }}
{{- if and (or (hasPrefix "http://" (default "" $v.checkpoint.source)) (hasPrefix "https://" (default "" $v.checkpoint.source))) (hasSuffix "/" (default ""
  $v.checkpoint.source)) }}
{{- $problems = append $problems
  (printf "checkpoint.source: %s is a folder, which https:// cannot list; use the address of a file, or hf:// or gs:// for a folder" (default ""
  $v.checkpoint.source)) }}{{- end }}
{{- if and $v.tokenizer.source (not (and (ne $v.tokenizer.kind "none") $v.tokenizer.path)) }}
{{- $problems = append $problems
  (printf "tokenizer.source: nothing can be fetched with kind %s and %s path; give tokenizer.kind and tokenizer.path, or remove it" $v.tokenizer.kind
  (ternary "a" "no" (not (not $v.tokenizer.path)))) }}{{- end }}
{{- if and $v.checkpoint.source (not $v.checkpoint.from) }}
{{- $problems = append $problems "checkpoint.source: no directory for the weights; give checkpoint.from, or remove it" }}{{- end }}
{{- if $v.storage.data.readOnly }}
{{- $problems = append $problems (printf "storage.data.readOnly: true, and %s writes there; use false for this release" $v.launcher) }}{{- end }}
{{- end }}
{{- if eq $v.launcher "nccl-test" }}
{{- if le $fact.world 1 }}{{- $problems = append $problems "nodes: one GPU has no partner; use more GPUs, or more machines" }}{{- end }}
{{- if and (and (gt $fact.world 1) (eq $fact.own.mode "pairs")) (lt (int64 $v.nodes) 3) }}
{{- $problems = append $problems (printf "nodes: %d machines do not form two pairs to compare; use 3 or more, or launchers.nccl-test.mode sweep"
  (int64 $v.nodes)) }}{{- end }}
{{- if lt (include "nebius.bytes" $fact.own.maxBytes | int64) (include "nebius.bytes" $fact.own.minBytes | int64) }}
{{- $problems = append $problems (printf "launchers.nccl-test.maxBytes: %s is less than minBytes %s; swap them" (default "" $fact.own.maxBytes) (default ""
  $fact.own.minBytes)) }}{{- end }}
{{- if lt (include "nebius.bytes" $fact.own.maxBytes | int64) (mul 4 $fact.world) }}
{{- $problems = append $problems (printf "launchers.nccl-test.maxBytes: %s has no number for each of %d GPUs; use %d or more" (default "" $fact.own.maxBytes)
  $fact.world (mul 4 $fact.world)) }}{{- end }}
{{- range $each := keys (default dict $fact.own.minBusbw) | sortAlpha }}
{{- if not (and (ne $fact.own.mode "pairs") (has $each $fact.own.operations)) }}
{{- $problems = append $problems (printf "launchers.nccl-test.minBusbw.%s: %s is not measured in a sweep of this run; remove it, or change mode or operations"
  $each $each) }}{{- end }}
{{- end }}
{{- if and $fact.own.binary (not (eq $fact.workload "volcano-job" "mpijob")) }}
{{- $problems = append $problems
  (printf (print "launchers.nccl-test.binary: %s needs mpirun, which does not start the runs of this chart; leave it empty, as PyTorch " "measures the same")
  (default "" $fact.own.binary)) }}{{- end }}
{{- if and $fact.own.binary (eq $fact.own.mode "pairs") }}
{{- $problems = append $problems (printf "launchers.nccl-test.binary: %s measures all GPUs together; leave it empty for mode pairs" (default ""
  $fact.own.binary)) }}{{- end }}
{{- if and $fact.own.binary (not (and (eq (int64 (len (default list $fact.own.operations))) 1) (has $fact.measures $fact.own.operations))) }}
{{- $problems = append $problems (printf "launchers.nccl-test.operations: %s measures only %s; use [%s]" (default "" $fact.own.binary) $fact.measures
  $fact.measures) }}{{- end }}
{{- end }}
{{- if ne (int64 $v.run.maxRestarts) 0 }}
{{- $problems = append $problems (printf "run.maxRestarts: %d, and a Job cannot restart as a whole; use 0, or a chart of workload kind jobset"
  (int64 $v.run.maxRestarts)) }}{{- end }}
{{- if $v.run.ttlSecondsAfterFinished }}
{{- $problems = append $problems (printf "run.ttlSecondsAfterFinished: %v s after its end the run is gone, and the next upgrade starts it again; use null"
  (ternary "null" (int64 $v.run.ttlSecondsAfterFinished) (kindIs "invalid" $v.run.ttlSecondsAfterFinished))) }}{{- end }}
{{- if eq $fact.launcher.task "train" "test" }}
{{- if and (gt (int64 $v.nodes) 1) (eq $v.network.interface "none") }}
{{- $problems = append $problems (printf "network.interface: with none, %d machines would use TCP; use infiniband, or tcp if you want TCP" (int64 $v.nodes))
  }}{{- end }}
{{- if and (and (eq $v.network.interface "infiniband") (gt (int64 $v.nodes) 1) (hasKey $fact.machine.capacity (default "" $v.network.resource)))
  (gt (ternary (int64 $v.network.resourceCount) $fact.gpusPerNode (not (not $v.network.resourceCount))) (include "nebius.wholeNumber"
  (index $fact.machine.capacity (default "" $v.network.resource)) | int64)) }}
{{- $problems = append $problems (printf "network.resourceCount: %d is more than the %s %s of %s; use %s or less" (ternary (int64 $v.network.resourceCount)
  $fact.gpusPerNode (not (not $v.network.resourceCount))) (default "" (index $fact.machine.capacity (default "" $v.network.resource))) (default ""
  $v.network.resource) $fact.machine.name (default "" (index $fact.machine.capacity (default "" $v.network.resource)))) }}{{- end }}
{{- end }}
{{- range $each := list "data" "outputs" "scratch" }}
{{- if and (index $v.storage $each).mountOptions (or (hasPrefix "pvc://" (default "" (index $v.storage $each).from)) (hasPrefix "nfs://" (default ""
  (index $v.storage $each).from)) (hasPrefix "disk://" (default "" (index $v.storage $each).from)) (hasPrefix "memory://" (default "" (index $v.storage
  $each).from))) }}
{{- $problems = append $problems (printf "storage.%s.mountOptions: %s, and %s takes none; remove it" $each (default "" (index $v.storage $each).mountOptions)
  (default "" (index $v.storage $each).from)) }}{{- end }}
{{- end }}
{{- if $v.storage.outputs.readOnly }}{{- $problems = append $problems "storage.outputs.readOnly: true, and runs write there; use false" }}{{- end }}
{{- if eq $fact.launcher.task "train" }}
{{- if and $v.checkpoint.enabled (hasPrefix "memory://" (default "" $v.storage.outputs.from)) }}
{{- $problems = append $problems (print "storage.outputs.from: checkpoints in memory:// are lost with the pod, and fill the machine's memory; use storage that "
  "all machines share, such as pvc://, or checkpoint.enabled false") }}{{- end }}
{{- end }}
{{- if eq $fact.launcher.task "train" "test" }}
{{- if and $v.topology.mode (not $v.queue.name) }}
{{- $problems = append $problems (printf "topology.mode: %s, and no queue that places the pods; give queue.name, or use \"\"" (default "" $v.topology.mode))
  }}{{- end }}
{{- if and $v.queue.flexStart (not (and $v.queue.name $v.run.deadlineSeconds)) }}
{{- $problems = append $problems (printf "queue.flexStart: true without %s; give %s, or use false" (ternary "run.deadlineSeconds" (ternary "queue.name"
  "queue.name and run.deadlineSeconds" (not (not $v.run.deadlineSeconds))) (not (not $v.queue.name))) (ternary "run.deadlineSeconds" (ternary "queue.name"
  "queue.name and run.deadlineSeconds" (not (not $v.run.deadlineSeconds))) (not (not $v.queue.name)))) }}{{- end }}
{{- if and $v.topology.sliceSize (ne (mod (int64 $v.nodes) (max (int64 $v.topology.sliceSize) 1)) 0) }}
{{- $problems = append $problems (printf "topology.sliceSize: %v does not divide %d machines; use %d" (ternary "null" (int64 $v.topology.sliceSize)
  (kindIs "invalid" $v.topology.sliceSize)) (int64 $v.nodes) (include "nebius.divisor" (list (int64 $v.nodes) (max (int64 $v.topology.sliceSize) 1)) | int64))
  }}{{- end }}
{{- end }}
{{- /* What only Helm knows, as in validate.tpl of launchers, fragments and the workload kind. */}}
{{- $check := dict "problems" list }}
{{- $launcher := .Run.launcher }}
{{- $machine := .Run.machine }}
{{- $gpus := .Run.gpusPerNode }}
{{- if eq .Values.launcher "megatron-lm" }}
{{- $release := regexFind "^nvcr[.]io/nvidia/nemo:[0-9]{2}[.][0-9]{2}" $launcher.image | regexFind "[0-9]{2}[.][0-9]{2}$" }}
{{- $since := dict "mxfp8" "25.04" "nvfp4" "25.11" }}
{{- $first := get $since .Values.precision }}
{{- if and $release (gt $first $release) (not (get .Values.launchers "megatron-lm").program) }}
{{- $_ := set $check "problems" (append $check.problems
  (printf "launchers.megatron-lm.image: %s has no precision %s; use nvcr.io/nvidia/nemo:%s or newer" $launcher.image .Values.precision $first)) }}
{{- end }}
{{- end }}
{{- if eq .Values.launcher "nemo-1" }}
{{- $release := regexFind "^nvcr[.]io/nvidia/nemo:[0-9]{2}[.][0-9]{2}" $launcher.image }}
{{- if and (gt (regexFind "[0-9]{2}[.][0-9]{2}$" $release) "25.07") (not (get .Values.launchers "nemo-1").program) }}
{{- $_ := set $check "problems" (append $check.problems
  (printf "launchers.nemo-1.image: %s has no NeMo 1 program; use nvcr.io/nvidia/nemo:25.07 or older, or another launcher" $launcher.image)) }}
{{- end }}
{{- end }}


{{- include "nebius.machinesFolders" (list . $check) }}
{{- with concat $problems $check.problems }}{{ fail (printf "\n%s" (join "\n" .)) }}{{ end }}
{{- end }}

{{/* Refuses volumes of the machine's own system, as `chartgen check` does. Takes (list root check). */}}
{{- define "nebius.machinesFolders" -}}
{{- $check := index . 1 }}
{{- $writable := list }}
{{- $v := (index . 0).Values }}
{{- $mounts := $v.extraVolumeMounts | default list }}
{{- range list $v.extraContainers $v.extraInitContainers }}
{{- range . }}{{ $mounts = concat $mounts (.volumeMounts | default list) }}{{ end }}
{{- end }}
{{- range $mounts }}{{ if ne (toString .readOnly) "true" }}{{ $writable = append $writable .name }}{{ end }}{{ end }}
{{- $system := print
  `^(/(bin|boot|dev|efi|etc|home|lib|lib32|lib64|libx32|opt|ostree|proc|root|run|sbin|sys|sysroot|usr|var)(/.*)?|/mnt|/mnt/stateful_partition(/.*)?)$` }}
{{- $open := print `^(/dev/(aperture_devices|dmabuf_import_helper|dri|gdrdrv|hugepages|infiniband|kfd|nvidia[a-z0-9-]*|shm)(/.+)?|/home/kubernetes/bin`
  `/(gib|nvidia)(/.+)?|/proc/sys|/sys|/opt/.+|/etc/crusoe/nccl_topo|/mnt/stateful_partition/kube-ephemeral-ssd(/.*)?)$` }}
{{- range $index, $volume := $v.extraVolumes }}
{{- $host := kindIs "map" $volume.hostPath | ternary $volume.hostPath dict }}
{{- $path := toString $host.path }}
{{- $kept := and (regexMatch `^(/opt/.+|/etc/crusoe/nccl_topo)$` $path) (or (has $volume.name $writable) (not (has $host.type (list "File" "Directory")))) }}
{{- if and $host.path (or $kept (not (regexMatch `^(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$` $path)) (hasSuffix ".sock" $path)
  (and (regexMatch $system $path) (not (regexMatch $open $path)))) }}
{{- $_ := set $check "problems" (append $check.problems
  (printf "extraVolumes[%d].hostPath: %s belongs to the machine's own system%s" $index $path ($kept | ternary ", and pods may only read it" ""))) }}
{{- end }}
{{- end }}
{{- end }}
