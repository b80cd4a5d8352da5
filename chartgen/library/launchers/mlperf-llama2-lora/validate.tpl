{{- $own := get .Values.launchers "mlperf-llama2-lora" }}
{{- if or (ne (int64 .Values.model.hiddenSize) 8192) (ne (int64 .Values.model.attentionHeads) 64) }}
{{- $_ := set $check "problems" (append $check.problems "model.hiddenSize: the benchmark trains Llama 2 70B only; take its preset llama2-70b-lora.yaml") }}
{{- end }}
{{- range $key, $wrong := dict
  "parallelism.virtualPipeline" (gt (int64 .Values.parallelism.virtualPipeline) 1)
  "parallelism.expert" (gt (int64 .Values.parallelism.expert) 1)
  "recompute" (ne (include "<%= chart %>.recompute" . | fromYaml).granularity "none")
  "checkpoint.enabled" .Values.checkpoint.enabled
  "profile.enabled" .Values.profile.enabled
  "data.stage" .Values.data.stage
}}
{{- if $wrong }}
{{- $_ := set $check "problems" (append $check.problems (printf "%s: the MLPerf benchmark does not support it; turn it off" $key)) }}
{{- end }}
{{- end }}
{{- if not .Values.checkpoint.from }}
{{- $_ := set $check "problems" (append $check.problems "checkpoint.from: the benchmark starts from base weights; give their directory") }}
{{- end }}
{{- /* conf/megatron_gpt_peft_tuning_config.yaml: skip_evals, then val_check_interval. */}}
{{- $global := include "<%= chart %>.globalBatch" . | int64 }}
{{- $interval := ($own.config | default (dict)).VAL_CHECK_INTERVAL | default 384 | int64 }}
{{- $first := div (mul (add (div $global 8) 3) $interval) $global }}
{{- if lt (int64 .Values.steps) $first }}
{{- $_ := set $check "problems" (append $check.problems (printf "steps: %d end before the first evaluation, which comes after %d steps of %d samples" (int64 .Values.steps) $first $global)) }}
{{- end }}
