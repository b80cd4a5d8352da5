{{/*
Refuses values that cannot run, all reasons at once: one line of text for each rule that they break. The limits are those
of Megatron's own start-up checks.
*/}}
{{- define "eks-p5.rules" }}
{{- $v := (index . 0).Values }}
{{- $f := index . 1 }}
{{- $p := dict }}
{{- range $name, $size := $v.parallelism }}{{ $_ := set $p $name (int64 $size) }}{{ end }}
{{ if eq $f.launcher.task "train" "test" }}
{{ if gt $f.gpusPerNode $f.machine.gpus }}
gpusPerNode: {{ $f.gpusPerNode }} is more than the {{ $f.machine.gpus }} GPUs of {{ $f.machine.name }}; raise nodes instead{{ end }}
{{ if and (not (kindIs "invalid" $v.network.adapters)) (gt (int64 $v.network.adapters) (include "eks-p5.wholeNumber" (index $f.machine.capacity
  "vpc.amazonaws.com/efa") | int64)) }}
network.adapters: {{ toJson $v.network.adapters }} is more than the {{ include "eks-p5.wholeNumber" (index $f.machine.capacity "vpc.amazonaws.com/efa") | int64
  }} EFA adapters of {{ $f.machine.name }}; use {{ include "eks-p5.wholeNumber" (index $f.machine.capacity "vpc.amazonaws.com/efa") | int64 }} or less, or null
  for all{{ end }}
{{ if and $v.network.adapters (eq $v.network.interface "tcp") }}
network.adapters: {{ toJson $v.network.adapters }} adapters with network.interface tcp; use efa, or null adapters{{ end }}
{{ if and $v.network.hugePages (not (hasKey $f.requested "cpu")) (not (hasKey $f.requested "memory")) }}
network.hugePages: {{ default "" $v.network.hugePages }} of huge pages come only with cpu or memory; set launchers.{{ $v.launcher }}.resources.requests.memory{{
  end }}
{{ if and $v.topology.mode (not $v.queue.name) }}
topology.mode: {{ default "" $v.topology.mode }}, and no queue that places the pods; give queue.name, or use ""{{ end }}
{{ if and $v.queue.flexStart (or (not $v.queue.name) (not $v.run.deadlineSeconds)) }}
queue.flexStart: true without {{ ternary "run.deadlineSeconds" (ternary "queue.name" "queue.name and run.deadlineSeconds" (not (not $v.run.deadlineSeconds)))
  (not (not $v.queue.name)) }}; give {{ ternary "run.deadlineSeconds" (ternary "queue.name" "queue.name and run.deadlineSeconds"
  (not (not $v.run.deadlineSeconds))) (not (not $v.queue.name)) }}, or use false{{ end }}
{{ if and $v.topology.sliceSize (ne (mod (add $v.nodes $v.run.spares) (max $v.topology.sliceSize 1)) 0) }}
topology.sliceSize: {{ toJson $v.topology.sliceSize }} does not divide {{ add $v.nodes $v.run.spares }} machines; use {{ include "eks-p5.divisor"
  (list (add $v.nodes $v.run.spares) (max $v.topology.sliceSize 1)) | int64 }}{{ end }}
{{ if and $v.topology.sliceSize (gt (int64 $v.run.spares) 0) $f.machine.fabric.computeDomain (ne (mod $v.nodes (max $v.topology.sliceSize 1)) 0) }}
topology.sliceSize: {{ toJson $v.topology.sliceSize }} does not divide {{ int64 $v.nodes }} machines, and ft_launcher replaces whole slices; use {{ include
  "eks-p5.divisor" (list (int64 $v.nodes) (max $v.topology.sliceSize 1)) | int64 }}, and as many spares{{ end }}
{{ end }}
{{ if eq $f.launcher.task "train" }}
{{ if ne (mod $f.world $f.modelParallel) 0 }}
nodes: {{ $f.world }} GPUs ({{ int64 $v.nodes }} machine{{ ternary "" "s" (eq (int64 $v.nodes) 1) }} x {{ $f.gpusPerNode }}) cannot be divided by tensor {{
  $p.tensor }} x pipeline {{ $p.pipeline }} x context {{ $p.context }} = {{ $f.modelParallel }}; use {{ include "eks-p5.multiples"
  (list (max (div $f.modelParallel (include "eks-p5.gcd" (list $f.modelParallel $f.gpusPerNode) | int64)) 1) (int64 $v.nodes)) }} machines{{ end }}
{{ if and (eq (mod $f.world $f.modelParallel) 0) (ne (mod $f.globalBatch (max 1 (mul $v.batch.micro $f.dataParallel))) 0) }}
batch.global: {{ $f.globalBatch }} is not divisible by micro batch {{ int64 $v.batch.micro }} x data parallel {{ $f.dataParallel }} = {{ mul $v.batch.micro
  $f.dataParallel }}; nearest: {{ include "eks-p5.multiples" (list (mul $v.batch.micro $f.dataParallel) $f.globalBatch) }}{{ end }}
{{ if and (eq (mod $f.world $f.modelParallel) 0) (eq (mod $f.globalBatch (max 1 (mul $v.batch.micro $f.dataParallel))) 0) (gt $p.virtualPipeline 1)
  (ne (mod $f.microBatches $p.pipeline) 0) }}
batch.global: {{ $f.globalBatch }} gives {{ $f.microBatches }} micro-batches, which pipeline {{ $p.pipeline }} cannot interleave; use a multiple of {{ mul
  (mul $v.batch.micro $f.dataParallel) $p.pipeline }}{{ end }}
{{ if and (ne $p.virtualPipeline 1) (le $p.pipeline 1) }}parallelism.virtualPipeline: needs pipeline above 1; use 1{{ end }}
{{ if and $v.parallelism.sequence (le $p.tensor 1) }}parallelism.sequence: needs tensor above 1; use false{{ end }}
{{ if and (gt $p.expert 1) (eq (mod $f.world $f.modelParallel) 0) (eq (mod $f.world (max 1 (mul $f.expertTensor $p.pipeline))) 0) (ne (mod $f.world
  $f.expertParallel) 0) }}
parallelism.expert: {{ $p.expert }} x expert tensor {{ $f.expertTensor }} x pipeline {{ $p.pipeline }} = {{ $f.expertParallel }} does not divide {{ $f.world }}
  GPUs; use {{ include "eks-p5.divisor" (list (include "eks-p5.gcd" (list (max (div $f.world (max 1 (mul $f.expertTensor $p.pipeline))) 1)
  (ternary (max $v.model.experts 1) $f.world (not (not $v.model.experts)))) | int64) (max (sub $p.expert 1) 1)) | int64 }}{{ end }}
{{ if and (or (gt $p.expert 1) (ne $f.expertTensor $p.tensor)) (eq (mod $f.world $f.modelParallel) 0) (gt (mod $f.world (max 1 (mul $f.expertTensor
  $p.pipeline))) 0) }}
parallelism.expert: {{ $p.expert }} x expert tensor {{ $f.expertTensor }} x pipeline {{ $p.pipeline }} = {{ $f.expertParallel }} does not divide {{ $f.world }}
  GPUs; use a multiple of {{ $f.expertParallel }} GPUs{{ end }}
{{ if and (ne $f.expertTensor $p.tensor) (not (hasKey $f.launcher.owns "parallelism.expertTensor")) }}
parallelism.expertTensor: launcher {{ $v.launcher }} has no option for it; leave it out{{ end }}
{{ if not (has $v.precision $f.launcher.precisions) }}
precision: {{ $v.precision }} cannot be trained with launcher {{ $v.launcher }}; use {{ join ", " $f.launcher.precisions }}{{ end }}
{{ range $each := $f.given }}
{{ if not (hasKey $f.launcher.owns $each) }}
{{ $each }}: launcher {{ $v.launcher }} has no option for it; leave it out, or pass the program's own option below launchers.{{ $v.launcher }}{{ end }}{{ end }}
{{ if and (not (kindIs "invalid" $f.learningRate)) (not (kindIs "invalid" $f.minLearningRate)) (gt (float64 $f.minLearningRate) (float64 $f.learningRate)) }}
optimizer.minLearningRate: {{ printf "%.6g" (float64 $f.minLearningRate) }} is above learningRate {{ printf "%.6g" (float64 $f.learningRate) }}; use {{ printf
  "%.6g" (float64 (mulf (float64 $f.learningRate) (divf 1 10))) }}, or 0{{ end }}
{{ if and $v.profile.enabled (gt (int64 $v.profile.startStep) (int64 $v.profile.endStep)) }}
profile.startStep: {{ int64 $v.profile.startStep }} is behind endStep {{ int64 $v.profile.endStep }}; use {{ int64 $v.profile.endStep }} or less{{ end }}
{{ if and $v.profile.enabled (le (int64 $v.profile.startStep) (int64 $v.profile.endStep)) (gt (int64 $v.steps) 0) (ge (int64 $v.profile.startStep)
  (int64 $v.steps)) }}
profile.startStep: {{ int64 $v.profile.startStep }} is not among the {{ int64 $v.steps }} steps of the run, which count from 0; use {{ max (sub $v.steps 3) 0 }}
  and endStep {{ sub $v.steps 1 }}{{ end }}
{{ range $each := $v.profile.ranks }}
{{ if and $v.profile.enabled (ge (int64 $each) $f.world) }}
profile.ranks: {{ int64 $each }} is beyond the {{ $f.world }} ranks of the run; use 0 to {{ sub $f.world 1 }}{{ end }}{{ end }}
{{ if and $v.run.hangMinutes (not (kindIs "invalid" $v.run.deadlineSeconds)) (ge (mul $v.run.hangMinutes 60) (int64 $v.run.deadlineSeconds)) }}
run.hangMinutes: {{ toJson $v.run.hangMinutes }} minutes are not less than the {{ toJson $v.run.deadlineSeconds }} seconds of run.deadlineSeconds; use fewer
  minutes, or 0 to leave it to the deadline{{ end }}
{{ if and (not (kindIs "invalid" $v.run.metricsPort)) (not $f.stepPatterns) }}
run.metricsPort: {{ toJson $v.run.metricsPort }}, and nothing describes the line of a step of launcher {{ $v.launcher }}; {{ ternary
  "describe it in launchers.torchrun.metrics, or use null" "use null" (eq $v.launcher "torchrun") }}{{ end }}
{{ if and (not (kindIs "invalid" $v.run.metricsPort)) (eq (int64 $v.run.metricsPort) 6002 6003) }}
run.metricsPort: {{ toJson $v.run.metricsPort }} is where the ranks meet; use another port, such as 9401{{ end }}
{{ if and (not (kindIs "invalid" $v.mlflow.experiment)) (not $v.mlflow.uri) }}
mlflow.uri: empty, and MLflow would write {{ ternary "null" $v.mlflow.experiment (kindIs "invalid" $v.mlflow.experiment) }} into the pod; give the address of
  the server{{ end }}
{{ if and $v.data.stage (not $v.data.name) (not $v.data.prefixes) }}
data.stage: no data set to copy; name one with data.name or data.prefixes, or use false{{ end }}
{{ if and (ne $v.tokenizer.kind "none") (or (ne $v.launcher "nemo-1") (ne $v.tokenizer.kind "gpt2")) (not $v.tokenizer.path) }}
tokenizer.path: empty, and {{ $v.tokenizer.kind }} needs a directory; set it{{ end }}
{{ if and $v.checkpoint.enabled (hasPrefix "memory://" (default "" $v.storage.outputs.from)) }}
storage.outputs.from: checkpoints in memory:// are lost with the pod, and fill the machine's memory; use storage that all machines share, such as pvc://, or
  checkpoint.enabled false{{ end }}
{{ end }}
{{ if and (eq $f.launcher.task "train") $f.describesModel }}
{{ if and (not $f.stageOption) (ne (mod $f.pipelineLayers $p.pipeline) 0) }}
parallelism.pipeline: {{ $f.pipelineLayers }} layers cannot be divided by pipeline {{ $p.pipeline }} x virtual {{ $p.virtualPipeline }}; pipeline {{ include
  "eks-p5.nearest" (list (max (div $f.pipelineLayers (ternary $p.virtualPipeline 1 (eq (mod $f.pipelineLayers $p.virtualPipeline) 0))) 1) $p.pipeline) | int64
  }} would fit{{ end }}
{{ if and (not $f.stageOption) (eq (mod $f.pipelineLayers $p.pipeline) 0) (ne (mod (div $f.pipelineLayers $p.pipeline) $p.virtualPipeline) 0) }}
parallelism.virtualPipeline: {{ $f.pipelineLayers }} layers cannot be divided by pipeline {{ $p.pipeline }} x virtual {{ $p.virtualPipeline }}; {{ include
  "eks-p5.nearest" (list (max (div $f.pipelineLayers $p.pipeline) 1) $p.virtualPipeline) | int64 }} would fit{{ end }}
{{ if and $f.stageOption (gt $f.otherStages 0) (gt $f.pipelineLayers $f.otherStages) (or (lt $f.otherLayers $f.otherStages) (ne (mod $f.otherLayers
  (max $f.otherStages 1)) 0)) }}
launchers.{{ $v.launcher }}.config.{{ $f.stageOption }}: {{ $f.ownLayers }} of {{ $f.pipelineLayers }} layers leave {{ $f.otherLayers }} for {{ $f.otherStages
  }} other stages of pipeline {{ $p.pipeline }}; give them {{ sub $f.pipelineLayers (mul (min (max (div (add $f.otherLayers (div $f.otherStages 2))
  (max $f.otherStages 1)) 1) (div (sub $f.pipelineLayers 1) (max $f.otherStages 1))) $f.otherStages) }} layers in all{{ end }}
{{ if and $f.stageOption (or (le $f.otherStages 0) (le $f.pipelineLayers $f.otherStages)) (or (ne $f.otherStages 0) (ne $f.otherLayers 0)) }}
launchers.{{ $v.launcher }}.config.{{ $f.stageOption }}: {{ $f.ownLayers }} of {{ $f.pipelineLayers }} layers leave {{ $f.otherLayers }} for {{ $f.otherStages
  }} other stages of pipeline {{ $p.pipeline }}; remove it{{ end }}
{{ if and (ge $f.otherLayers $f.otherStages) (ternary (eq (mod $f.otherLayers (max $f.otherStages 1)) 0) (and (eq $f.otherStages 0) (eq $f.otherLayers 0))
  (gt $f.otherStages 0)) (ne (mod $f.stageUnit $p.virtualPipeline) 0) }}
parallelism.virtualPipeline: stages of {{ join ", " $f.stageSizes }} layers cannot all be divided by {{ $p.virtualPipeline }}; use 1{{ end }}
{{ if ne (mod $v.model.attentionHeads $p.tensor) 0 }}
parallelism.tensor: {{ int64 $v.model.attentionHeads }} heads cannot be divided by tensor {{ $p.tensor }}; use {{ include "eks-p5.divisor"
  (list (int64 $v.model.attentionHeads) $p.tensor) | int64 }}{{ end }}
{{ if ne (mod $v.model.hiddenSize $v.model.attentionHeads) 0 }}
model.hiddenSize: {{ int64 $v.model.hiddenSize }} cannot be divided by {{ int64 $v.model.attentionHeads }} attention heads; {{ include "eks-p5.nearest"
  (list (int64 $v.model.hiddenSize) (int64 $v.model.attentionHeads)) | int64 }} heads would fit{{ end }}
{{ if ne (mod $v.model.attentionHeads $f.queryGroups) 0 }}
model.queryGroups: {{ $f.queryGroups }} key and value heads do not divide {{ int64 $v.model.attentionHeads }} attention heads; use a divisor{{ end }}
{{ if and (eq (mod $v.model.attentionHeads $f.queryGroups) 0) (ne $f.queryGroups (int64 $v.model.attentionHeads)) (ne (mod $f.queryGroups $p.tensor) 0)
  (ne (mod $p.tensor $f.queryGroups) 0) }}
parallelism.tensor: {{ $f.queryGroups }} key and value heads are neither a multiple nor a divisor of tensor {{ $p.tensor }}; use {{ include "eks-p5.divisor"
  (list $f.queryGroups $p.tensor) | int64 }}{{ end }}
{{ if ne (mod $v.model.hiddenSize $p.tensor) 0 }}
parallelism.tensor: hiddenSize {{ int64 $v.model.hiddenSize }} cannot be divided by tensor {{ $p.tensor }}; use {{ include "eks-p5.divisor"
  (list (int64 $v.model.hiddenSize) $p.tensor) | int64 }}{{ end }}
{{ if ne (mod $f.ffnHiddenSize (ternary $f.expertTensor $p.tensor (not (not $v.model.experts)))) 0 }}
parallelism.{{ ternary "expertTensor" "tensor" (not (not $v.model.experts)) }}: ffnHiddenSize {{ $f.ffnHiddenSize }} cannot be divided by tensor {{ ternary
  $f.expertTensor $p.tensor (not (not $v.model.experts)) }}; use {{ include "eks-p5.divisor" (list $f.ffnHiddenSize (ternary $f.expertTensor $p.tensor
  (not (not $v.model.experts)))) | int64 }}{{ end }}
{{ if and (gt $p.context 1) (ne (mod $v.sequenceLength (max 1 (mul 2 $p.context))) 0) }}
sequenceLength: {{ int64 $v.sequenceLength }} cannot be divided by 2 x context {{ $p.context }}; use a multiple of {{ mul 2 $p.context }}{{ end }}
{{ if and $v.parallelism.sequence (or (eq $p.context 1) (eq (mod $v.sequenceLength (max 1 (mul 2 $p.context))) 0)) (ne (mod (div $v.sequenceLength $p.context)
  $p.tensor) 0) }}
sequenceLength: {{ int64 $v.sequenceLength }} tokens on context {{ $p.context }} cannot be divided by tensor {{ $p.tensor }}; use a multiple of {{ mul
  $p.context $p.tensor }}{{ end }}
{{ if and (gt $p.expert 1) (not $v.model.experts) }}parallelism.expert: needs model.experts; use 1{{ end }}
{{ if and $v.model.experts (ne (mod $v.model.experts $p.expert) 0) }}
parallelism.expert: {{ $p.expert }} does not divide {{ int64 $v.model.experts }} experts; use a divisor of {{ int64 $v.model.experts }}{{ end }}
{{ if and (ne $f.expertTensor $p.tensor) (not $v.model.experts) }}parallelism.expertTensor: needs model.experts; use null{{ end }}
{{ if and $v.model.experts (gt (int64 $v.model.expertsPerToken) (int64 $v.model.experts)) }}
model.expertsPerToken: {{ int64 $v.model.expertsPerToken }} is more than the {{ int64 $v.model.experts }} experts of a layer; use {{ int64 $v.model.experts }}
  or less{{ end }}
{{ if and $v.model.experts (gt $p.tensor 1) (not $v.parallelism.sequence) }}
parallelism.sequence: a model with experts needs it when tensor is above 1; use true{{ end }}
{{ if and (eq $v.precision "fp8" "mxfp8" "nvfp4") (eq (mod (mul $v.sequenceLength $v.batch.micro) (max 1 (mul $p.context (ternary $p.tensor 1
  (not (not $v.parallelism.sequence)))))) 0) (ne (mod (div (mul $v.sequenceLength $v.batch.micro) (max 1 (mul $p.context (ternary $p.tensor 1
  (not (not $v.parallelism.sequence)))))) (ternary 32 (ternary 16 8 (eq $v.precision "nvfp4")) (eq $v.precision "mxfp8"))) 0) }}
sequenceLength: {{ div (mul $v.sequenceLength $v.batch.micro) (max 1 (mul $p.context (ternary $p.tensor 1 (not (not $v.parallelism.sequence))))) }} tokens on a
  GPU are not a multiple of {{ ternary 32 (ternary 16 8 (eq $v.precision "nvfp4")) (eq $v.precision "mxfp8") }}, which {{ $v.precision }} needs; use a multiple
  of {{ mul (mul (ternary 32 (ternary 16 8 (eq $v.precision "nvfp4")) (eq $v.precision "mxfp8")) $p.context) (ternary $p.tensor 1
  (not (not $v.parallelism.sequence))) }}{{ end }}
{{ if and (eq $v.precision "fp8" "mxfp8" "nvfp4") (ne (mod $v.model.hiddenSize (ternary 32 16 (eq $v.precision "mxfp8"))) 0) }}
model.hiddenSize: {{ int64 $v.model.hiddenSize }} on a GPU is not a multiple of {{ ternary 32 16 (eq $v.precision "mxfp8") }}, which {{ $v.precision }} needs;
  use a multiple of {{ ternary 32 16 (eq $v.precision "mxfp8") }}{{ end }}
{{ if and (eq $v.precision "fp8" "mxfp8" "nvfp4") (eq (mod $f.ffnHiddenSize (ternary $f.expertTensor $p.tensor (not (not $v.model.experts)))) 0)
  (ne (mod (div $f.ffnHiddenSize (ternary $f.expertTensor $p.tensor (not (not $v.model.experts)))) (ternary 32 16 (eq $v.precision "mxfp8"))) 0) }}
model.ffnHiddenSize: {{ div $f.ffnHiddenSize (ternary $f.expertTensor $p.tensor (not (not $v.model.experts))) }} on a GPU is not a multiple of {{ ternary 32 16
  (eq $v.precision "mxfp8") }}, which {{ $v.precision }} needs; use a multiple of {{ mul (ternary 32 16 (eq $v.precision "mxfp8")) (ternary $f.expertTensor
  $p.tensor (not (not $v.model.experts))) }}{{ end }}
{{ if and (not (kindIs "invalid" $v.model.rotaryBase)) (eq $v.model.family "gpt") }}model.rotaryBase: family gpt learns its positions; use null{{ end }}
{{ if and (eq $f.recompute.granularity "full") (eq $f.recompute.method "uniform") (eq (mod $f.pipelineLayers (max 1 (mul $p.pipeline $p.virtualPipeline))) 0)
  (ne (mod (div $f.pipelineLayers (max 1 (mul $p.pipeline $p.virtualPipeline))) $f.recompute.layers) 0) }}
recompute.layers: units of {{ $f.recompute.layers }} layers do not divide a chunk of {{ div $f.pipelineLayers (max 1 (mul $p.pipeline $p.virtualPipeline)) }};
  use {{ include "eks-p5.divisor" (list (max (div $f.pipelineLayers (max 1 (mul $p.pipeline $p.virtualPipeline))) 1) $f.recompute.layers) | int64 }}, or method
  block{{ end }}
{{ end }}
{{ range $each := $f.overridden }}
launchers.{{ $v.launcher }}.{{ default "" $each.place }}: {{ default "" $each.option }} is set by {{ default "" $each.key }}; set {{ default "" $each.key }},
  and remove it here{{ end }}
{{ if not $f.launcher.image }}launchers.{{ $v.launcher }}.image: empty, and {{ $v.launcher }} has no public image; set it to your own image{{ end }}
{{ if and (gt (int64 $v.run.spares) 0) (or (not (eq $f.workload "job" "jobset")) (ne $f.launcher.task "train") (ne $f.launcher.processes "gpu")) }}
run.spares: {{ int64 $v.run.spares }}, and nothing gives their work to them with launcher {{ $v.launcher }} and workload kind {{ $f.workload }}; use 0, or a
  program that torchrun starts with workload kind job or jobset{{ end }}
{{ if and (gt (int64 $v.run.spares) 0) (eq $f.workload "job" "jobset") (le (int64 $v.nodes) 1) }}
run.spares: {{ int64 $v.run.spares }}, and the one machine of the run leads it: no spare can take its place; use 0, and run.maxRestarts{{ end }}
{{ if $v.run.ttlSecondsAfterFinished }}
run.ttlSecondsAfterFinished: {{ toJson $v.run.ttlSecondsAfterFinished }} s after its end the run is gone, and the next upgrade starts it again; use null{{ end
  }}
{{ range $each := list "data" "outputs" "scratch" }}
{{ if and (index $v.storage $each).mountOptions (or (hasPrefix "pvc://" (default "" (index $v.storage $each).from)) (hasPrefix "nfs://" (default ""
  (index $v.storage $each).from)) (hasPrefix "disk://" (default "" (index $v.storage $each).from)) (hasPrefix "memory://" (default "" (index $v.storage
  $each).from))) }}
storage.{{ $each }}.mountOptions: {{ default "" (index $v.storage $each).mountOptions }}, and {{ default "" (index $v.storage $each).from }} takes none; remove
  it{{ end }}{{ end }}
{{ if $v.storage.outputs.readOnly }}storage.outputs.readOnly: true, and runs write there; use false{{ end }}
{{ if eq $v.launcher "megatron-lm" }}
{{ range $each := $f.abbreviated }}
launchers.megatron-lm.{{ default "" $each.place }}: '{{ default "" $each.name }}' is the beginning of {{ default "" $each.option }}, which {{ default ""
  $each.key }} sets; set {{ default "" $each.key }}, or write the name in full{{ end }}
{{ if and (not (kindIs "invalid" $v.optimizer.warmupSteps)) (le (int64 $v.steps) 0) }}
optimizer.warmupSteps: {{ toJson $v.optimizer.warmupSteps }} counts steps, and the run counts samples; use null, and
  launchers.megatron-lm.config.lr-warmup-samples{{ end }}
{{ if and (not (kindIs "invalid" $v.optimizer.warmupSteps)) (gt (int64 $v.steps) 0) (gt (include "eks-p5.wholeNumber" (index $f.own.config "lr-decay-iters") |
  int64) 0) (ge (int64 $v.optimizer.warmupSteps) (include "eks-p5.wholeNumber" (index $f.own.config "lr-decay-iters") | int64)) }}
optimizer.warmupSteps: {{ toJson $v.optimizer.warmupSteps }} is not below lr-decay-iters {{ include "eks-p5.wholeNumber" (index $f.own.config "lr-decay-iters")
  | int64 }}; use {{ sub (include "eks-p5.wholeNumber" (index $f.own.config "lr-decay-iters") | int64) 1 }} or less{{ end }}
{{ if and $v.evaluation.batches (not $f.evaluationShare) }}
data.split: {{ default "" $v.data.split }} keeps nothing for evaluation; give it a share such as 98,2,0, or evaluation.batches 0{{ end }}
{{ range $each := $f.samples }}
{{ if ne (int64 $v.steps) 0 }}
launchers.megatron-lm.config.{{ $each }}: {{ $each }} counts samples, and steps is {{ int64 $v.steps }}; set steps to 0, or remove it{{ end }}{{ end }}
{{ if and (eq (int64 $v.steps) 0) (not (has "train-samples" $f.samples)) }}
steps: 0 leaves the length to the launcher's configuration, which has no train-samples; set it, or launchers.megatron-lm.config.train-samples{{ end }}
{{ range $each := $f.iterations }}
{{ if and (has "train-samples" $f.samples) (le (int64 $v.steps) 0) }}
launchers.megatron-lm.config.{{ $each }}: {{ $each }} counts steps, and the run counts samples; use the option that ends in -samples{{ end }}{{ end }}
{{ end }}
{{ if eq $v.launcher "megatron-bridge" }}
{{ if le $f.imageRelease 0 }}
launchers.megatron-bridge.release: empty, and {{ $f.launcher.image }} does not show its release of Bridge; set the release of nvcr.io/nvidia/nemo with the same
  Bridge, such as "26.06"{{ end }}
{{ if and (gt $f.imageRelease 0) (lt $f.imageRelease (ternary 2602 2604 (not (not $f.own.recipe)))) }}
launchers.megatron-bridge.image: {{ $f.launcher.image }} has no Bridge that takes these values; use nvcr.io/nvidia/nemo:{{ ternary "26.02" "26.04"
  (not (not $f.own.recipe)) }} or newer{{ end }}
{{ if and (ne $f.own.mode "pretrain") (not $f.own.recipe) }}
launchers.megatron-bridge.recipe: empty, and {{ $f.own.mode }} needs a recipe; name one, such as llama3_8b_sft_config{{ end }}
{{ if and (ne $f.own.mode "pretrain") (not $v.checkpoint.from) }}
checkpoint.from: empty, and {{ $f.own.mode }} starts from weights; give the directory of a checkpoint in Megatron's format{{ end }}
{{ if and $f.own.dataset (not $f.own.recipe) }}
launchers.megatron-bridge.dataset: {{ default "" $f.own.dataset }} replaces the data of the values; leave it empty, or name a recipe{{ end }}
{{ if and (not $f.own.recipe) (le (int64 $v.steps) 0) }}steps: 0 leaves the length to Bridge, which has none for this model; use the number of steps{{ end }}
{{ end }}
{{ if eq $v.launcher "torchrun" }}
{{ if not $f.own.program }}
launchers.torchrun.program: empty; give its path in the image, /etc/chartgen/NAME for one of launchers.torchrun.files, or -m MODULE{{ end }}
{{ if and (hasPrefix "/etc/chartgen/" (default "" $f.own.program)) (not (hasKey $f.own.files (base (default "" $f.own.program)))) }}
launchers.torchrun.program: {{ default "" $f.own.program }} is none of launchers.torchrun.files; add it: --program-file {{ base (default "" $f.own.program) }},
  or the text there{{ end }}
{{ range $each := $f.own.args }}
{{ if and (hasPrefix "/etc/chartgen/" $each) (not (hasKey $f.own.files (base $each))) }}
launchers.torchrun.args: {{ $each }} is none of launchers.torchrun.files; give it there{{ end }}{{ end }}
{{ range $each := $f.unknownNames }}
launchers.torchrun.args: {{ $each }} is not a name that the chart fills in; use one of {{ join ", " $f.knownNames }}, or write ${{ $each }} for the text
  itself{{ end }}
{{ if and (eq $f.own.starter "accelerate") (eq $f.workload "volcano-job" "mpijob") }}
launchers.torchrun.starter: accelerate, and mpirun starts the processes of this chart; use torchrun{{ end }}
{{ if and (eq $f.own.starter "accelerate") (eq $f.workload "pytorchjob") $v.run.maxRestarts }}
run.maxRestarts: {{ toJson $v.run.maxRestarts }}, and accelerate does not start processes again; use 0 or null, or starter torchrun{{ end }}
{{ if and (eq $f.own.starter "accelerate") (ne (int64 $v.run.spares) 0) }}
run.spares: {{ int64 $v.run.spares }}, and accelerate does not start processes again; use 0, or starter torchrun{{ end }}
{{ if and (ne $f.own.starter "accelerate") $f.own.starterArgs }}
launchers.torchrun.starterArgs: are arguments of accelerate, which does not start this run; remove them, or use starter accelerate{{ end }}
{{ end }}
{{ if eq $v.launcher "download" }}
{{ if and (not $v.data.source) (not $v.tokenizer.source) (not $v.checkpoint.source) (not $f.own.models) }}
data.source: empty, and download has nothing to fetch; give it, tokenizer.source, checkpoint.source or launchers.download.models{{ end }}
{{ if and (or (hasPrefix "http://" (default "" $v.data.source)) (hasPrefix "https://" (default "" $v.data.source))) (hasSuffix "/" (default "" $v.data.source))
  }}
data.source: {{ default "" $v.data.source }} is a folder, which https:// cannot list; use the address of a file, or hf:// or gs:// for a folder{{ end }}
{{ if and (or (hasPrefix "http://" (default "" $v.checkpoint.source)) (hasPrefix "https://" (default "" $v.checkpoint.source))) (hasSuffix "/" (default ""
  $v.checkpoint.source)) }}
checkpoint.source: {{ default "" $v.checkpoint.source }} is a folder, which https:// cannot list; use the address of a file, or hf:// or gs:// for a folder{{
  end }}
{{ if and $v.tokenizer.source (or (eq $v.tokenizer.kind "none") (not $v.tokenizer.path)) }}
tokenizer.source: nothing can be fetched with kind {{ $v.tokenizer.kind }} and {{ ternary "a" "no" (not (not $v.tokenizer.path)) }} path; give tokenizer.kind
  and tokenizer.path, or remove it{{ end }}
{{ if and $v.checkpoint.source (not $v.checkpoint.from) }}checkpoint.source: no directory for the weights; give checkpoint.from, or remove it{{ end }}
{{ if $v.storage.data.readOnly }}storage.data.readOnly: true, and {{ $v.launcher }} writes there; use false for this release{{ end }}
{{ end }}
{{ if eq $v.launcher "nccl-test" }}
{{ if and (ne $f.own.mode "calibrate") (le $f.world 1) }}nodes: one GPU has no partner; use more GPUs, or more machines{{ end }}
{{ if and (gt $f.world 1) (eq $f.own.mode "pairs") (lt (int64 $v.nodes) 3) }}
nodes: {{ int64 $v.nodes }} machines do not form two pairs to compare; use 3 or more, or launchers.nccl-test.mode sweep{{ end }}
{{ if lt (include "eks-p5.bytes" $f.own.maxBytes | int64) (include "eks-p5.bytes" $f.own.minBytes | int64) }}
launchers.nccl-test.maxBytes: {{ default "" $f.own.maxBytes }} is less than minBytes {{ default "" $f.own.minBytes }}; swap them{{ end }}
{{ if lt (include "eks-p5.bytes" $f.own.maxBytes | int64) (mul 4 $f.world) }}
launchers.nccl-test.maxBytes: {{ default "" $f.own.maxBytes }} has no number for each of {{ $f.world }} GPUs; use {{ mul 4 $f.world }} or more{{ end }}
{{ range $each := keys (default dict $f.own.minBusbw) | sortAlpha }}
{{ if or (ne $f.own.mode "sweep") (not (has $each $f.own.operations)) }}
launchers.nccl-test.minBusbw.{{ $each }}: {{ $each }} is not measured in a sweep of this run; remove it, or change mode or operations{{ end }}{{ end }}
{{ end }}
{{ end }}

{{- define "eks-p5.validate" -}}
{{- $v := .Values }}
{{- $fact := dict }}
{{- include "eks-p5.facts" (list . $fact) }}
{{- /* What only Helm knows, as in validate.tpl of launchers, fragments and the workload kind. */}}
{{- $check := dict "problems" list }}
{{- if regexMatch `[\x{7f}-\x{9f}\x{fffe}\x{ffff}]` (toJson .Values) }}
{{- $_ := set $check "problems" (list "values have a character from U+007F to U+009F, U+FFFE or U+FFFF, which Helm cannot write") }}
{{- end }}
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
{{- if not (regexMatch "^[a-z][-a-z0-9]*$" .Release.Name) }}
{{- $_ := set $check "problems" (append $check.problems
  (printf "release %s: the operator accepts only names of letters, digits and dashes that begin with a letter; choose another" .Release.Name)) }}
{{- end }}

{{- include "eks-p5.machinesFolders" (list . $check) }}
{{- $broken := include "eks-p5.rules" (list . $fact) | replace "\n  " " " | splitList "\n" | compact }}
{{- with concat $broken $check.problems }}{{ fail (printf "\n%s" (join "\n" .)) }}{{ end }}
{{- end }}

{{/* Refuses volumes of the machine's own system, as `chartgen check` does. Takes (list root check). */}}
{{- define "eks-p5.machinesFolders" -}}
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
