{{- $config := $launcher.config | default (dict) }}
{{- /* Options that share their portable key with another one, which launcher.yaml names. */}}
{{- $owned := dict
  "position-embedding-type" "model.family"
  "swiglu" "model.family"
  "disable-bias-linear" "model.family"
  "untie-embeddings-and-output-weights" "model.family"
  "group-query-attention" "model.queryGroups"
  "max-position-embeddings" "sequenceLength"
  "num-virtual-stages-per-pipeline-rank" "parallelism.virtualPipeline"
  "pipeline-model-parallel-layout" "parallelism.virtualPipeline"
  "fp16" "precision"
  "fp8-format" "precision"
  "recompute-activations" "recompute"
  "recompute-method" "recompute"
  "recompute-num-layers" "recompute"
  "mock-data" "data.name"
  "train-data-path" "data.name"
  "data-args-path" "data.name"
  "data-cache-path" "data.name"
  "vocab-file" "tokenizer.path"
  "merge-file" "tokenizer.path"
  "load" "checkpoint.enabled"
}}
{{- $known := keys $owned }}
{{- range $portable, $native := $launcher.owns }}{{ $_ := set $owned $native $portable }}{{ end }}
{{- $given := dict "config" (keys $config | sortAlpha) "args" list }}
{{- range $launcher.args }}
{{- if hasPrefix "--" . }}{{ $_ := set $given "args" (append $given.args (trimPrefix "--" . | splitList "=" | first)) }}{{ end }}
{{- end }}
{{- range $place, $names := $given }}
{{- range $name := $names }}
{{- /* argparse also takes the beginning of an option's name; an option of that name itself comes first. */}}
{{- $native := hasKey $owned $name | ternary $name "" }}
{{- range $option := keys $owned | sortAlpha }}
{{- if and (not $native) (hasPrefix $name $option) }}{{ $native = $option }}{{ end }}
{{- end }}
{{- if and $native (or (ne $name $native) (has $name $known)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.megatron-lm.%s: %s is set by %s; set that instead" $place $native (get $owned $native))) }}
{{- end }}
{{- end }}
{{- end }}
{{- $samples := list }}
{{- $iterations := list }}
{{- range $name := $given.config }}
{{- if ne (toJson (get $config $name)) "null" }}
{{- if regexMatch "^(train|lr-(decay|warmup))-samples$" $name }}{{ $samples = append $samples $name }}{{ end }}
{{- if regexMatch "^lr-(decay|warmup)-iters$" $name }}{{ $iterations = append $iterations $name }}{{ end }}
{{- end }}
{{- end }}
{{- if and .Values.steps $samples }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.megatron-lm.config: %s counts samples and steps is %d; set steps to 0, or remove it" (join ", " $samples) (int64 .Values.steps))) }}
{{- else if and (not .Values.steps) (not (has "train-samples" $samples)) }}
{{- $_ := set $check "problems" (append $check.problems "steps: 0 leaves the length to launchers.megatron-lm.config, which has no train-samples; set one of them") }}
{{- else if and (not .Values.steps) $iterations }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.megatron-lm.config: %s counts steps, but the run counts samples; use -samples" (join ", " $iterations))) }}
{{- end }}
{{- if and .Values.evaluation.batches (regexMatch "^[^,]+,0*[.]?0*," .Values.data.split) }}
{{- $_ := set $check "problems" (append $check.problems (printf "data.split: %s keeps nothing for evaluation; give it a share, or set evaluation.batches to 0" .Values.data.split)) }}
{{- end }}
{{- if and (ne .Values.tokenizer.kind "none") (not .Values.tokenizer.path) }}
{{- $_ := set $check "problems" (append $check.problems (printf "tokenizer.path: is empty; kind %s needs a directory" .Values.tokenizer.kind)) }}
{{- end }}
