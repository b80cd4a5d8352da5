{{- $config := $launcher.config | default (dict) }}
{{- $owned := dict }}
{{- range $portable, $natives := $launcher.owns }}
{{- range $natives }}{{ $_ := set $owned . $portable }}{{ end }}
{{- end }}
{{- $given := dict "config" (keys $config | sortAlpha) "args" list }}
{{- range $launcher.args }}
{{- if hasPrefix "--" . }}{{ $_ := set $given "args" (append $given.args (trimPrefix "--" . | splitList "=" | first)) }}{{ end }}
{{- end }}
{{- /* argparse also takes the beginning of an option's name. */}}
{{- range $place, $names := $given }}
{{- range $name := $names }}
{{- $begun := "" }}
{{- range $option := keys $owned | sortAlpha }}
{{- if and (not $begun) (hasPrefix $name $option) }}{{ $begun = $option }}{{ end }}
{{- end }}
{{- if and $begun (not (hasKey $owned $name)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.megatron-lm.%s: %s is set by %s; set that instead" $place $begun (get $owned $begun))) }}
{{- end }}
{{- end }}
{{- end }}
{{- $release := regexFind "^nvcr[.]io/nvidia/nemo:[0-9]{2}[.][0-9]{2}" $launcher.image | regexFind "[0-9]{2}[.][0-9]{2}$" }}
{{- $since := dict<% for row in compat().features if row.feature in launcher.precisions %> "<%= row.feature %>" "<%= row.from %>"<% endfor %> }}
{{- $first := get $since .Values.precision }}
{{- if and $release (gt $first $release) (not (get .Values.launchers "megatron-lm").program) }}
{{- $_ := set $check "problems" (append $check.problems (printf "launchers.megatron-lm.image: %s has no precision %s; use nvcr.io/nvidia/nemo:%s or newer" $launcher.image .Values.precision $first)) }}
{{- end }}
{{- $warmup := .Values.optimizer.warmupSteps }}
{{- $decay := index $config "lr-decay-iters" }}
{{- if and (not (kindIs "invalid" $warmup)) (not .Values.steps) }}
{{- $_ := set $check "problems" (append $check.problems "optimizer.warmupSteps: counts steps, but the run counts samples; use null, and launchers.megatron-lm.config.lr-warmup-samples") }}
{{- else if and (not (kindIs "invalid" $warmup)) (or (kindIs "float64" $decay) (kindIs "int64" $decay)) (ge (int64 $warmup) (int64 $decay)) }}
{{- $_ := set $check "problems" (append $check.problems (printf "optimizer.warmupSteps: %d is not below lr-decay-iters %d; use fewer" (int64 $warmup) (int64 $decay))) }}
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
