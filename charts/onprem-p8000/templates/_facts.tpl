{{/*
The facts that rules name beside values; `chartgen check` makes the same ones. Takes (list root dict), and fills the dict.
*/}}
{{- define "onprem-p8000.facts" -}}
{{- $root := index . 0 }}
{{- $fact := index . 1 }}
{{- $v := $root.Values }}
{{- $p := $v.parallelism }}
{{- $own := get $v.launchers $v.launcher }}
{{- $config := $own.config | default (dict) }}
{{- $nested := kindIs "map" $config.model | ternary $config.model (dict) }}
{{- $launcher := $root.Run.launcher }}
{{- $_ := set $fact "own" $own }}
{{- $_ := set $fact "describesModel" (not (and $launcher.ownModel (get $own ($launcher.ownModel | default "")))) }}
{{- $_ := set $fact "workload" "job" }}
{{- $machine := $root.Run.machine }}
{{- $_ := set $fact "machine" (merge (dict "name" $v.machineType "gpus" (int64 $machine.gpus) "fabric" ($machine.fabric | default (dict))) $machine) }}
{{- $_ := set $fact "launcher" (pick $launcher "task" "processes" "precisions" "owns") }}
{{- $_ := set $fact.launcher "image" ($launcher.image | default "") }}
{{- range list "gpusPerNode" "pods" "dataParallel" "globalBatch" }}{{ $_ := set $fact . (get $root.Run .) }}{{ end }}
{{- $_ := set $fact "expertTensor" (include "onprem-p8000.expertTensor" $root | int64) }}
{{- $_ := set $fact "pipelineLayers" (include "onprem-p8000.pipelineLayers" $root | int64) }}
{{- $_ := set $fact "world" $root.Run.worldSize }}
{{- $_ := set $fact "modelParallel" (mul $p.tensor $p.pipeline $p.context) }}
{{- $_ := set $fact "microBatches" (div $fact.globalBatch (max 1 (mul $v.batch.micro $fact.dataParallel))) }}
{{- $_ := set $fact "expertParallel" (mul $fact.expertTensor $p.expert $p.pipeline) }}
{{- $_ := set $fact "stageOption" "" }}
{{- $_ := set $fact "ownLayers" 0 }}
{{- $sizes := list }}
{{- range list "first" "last" }}
{{- $flat := include "onprem-p8000.wholeNumber" (get $config (printf "decoder-%s-pipeline-num-layers" .)) | int64 }}
{{- $deep := include "onprem-p8000.wholeNumber" (get $nested (printf "num_layers_in_%s_pipeline_stage" .)) | int64 }}
{{- $option := ternary (printf "decoder-%s-pipeline-num-layers" .) (printf "model.num_layers_in_%s_pipeline_stage" .) (gt $flat 0) }}
{{- with $flat | default $deep }}
{{- $sizes = append $sizes . }}
{{- $_ := set $fact "ownLayers" (add $fact.ownLayers .) }}
{{- $_ := set $fact "stageOption" ($fact.stageOption | default $option) }}
{{- end }}
{{- end }}
{{- $_ := set $fact "otherLayers" (sub $fact.pipelineLayers $fact.ownLayers) }}
{{- $_ := set $fact "otherStages" (sub $p.pipeline (len $sizes)) }}
{{- if and $sizes (gt $fact.otherStages 0) }}
{{- $sizes = append $sizes (div (max $fact.otherLayers 0) $fact.otherStages) }}
{{- end }}
{{- $_ := set $fact "stageSizes" (uniq $sizes) }}
{{- $_ := set $fact "stageUnit" 0 }}
{{- range $sizes }}{{ $_ := set $fact "stageUnit" (include "onprem-p8000.gcd" (list . $fact.stageUnit) | int64) }}{{ end }}
{{- $_ := set $fact "queryGroups" ($v.model.queryGroups | default $v.model.attentionHeads | int64) }}
{{- $_ := set $fact "ffnHiddenSize" ($v.model.ffnHiddenSize | default (mul 4 $v.model.hiddenSize) | int64) }}
{{- $_ := set $fact "recompute" (include "onprem-p8000.recompute" $root | fromYaml) }}
{{- $_ := set $fact.recompute "layers" (int64 $fact.recompute.layers) }}
{{- range list "learningRate" "minLearningRate" }}
{{- $rate := include "onprem-p8000.setting" (list $root (printf "optimizer.%s" .)) }}
{{- $_ := set $fact . (eq $rate "" | ternary nil (float64 $rate)) }}
{{- end }}
{{- $_ := set $fact "evaluationShare" (not (regexMatch "^[^,]+,0*[.]?0*," $v.data.split)) }}
{{- $_ := set $fact "stepPatterns" (include "onprem-p8000.stepPatterns" $root | fromJsonArray) }}
{{- $_ := set $fact "given" list }}
{{- range $key, $usual := fromJson `
  {"batch.global": "1/gpu", "batch.micro": 1, "checkpoint.enabled": false, "checkpoint.from": "", "checkpoint.keep":
  null, "data.name": "", "evaluation.batches": 0, "mlflow.experiment": null, "model.initStandardDeviation": null,
  "model.rotaryBase": null, "model.tiedEmbeddings": null, "optimizer.clipGradient": null, "optimizer.decay": null,
  "optimizer.learningRate": null, "optimizer.minLearningRate": null, "optimizer.warmupSteps": null,
  "optimizer.weightDecay": null, "parallelism.context": 1, "parallelism.distributedOptimizer": true,
  "parallelism.expert": 1, "parallelism.pipeline": 1, "parallelism.sequence": false, "parallelism.tensor": 1,
  "parallelism.virtualPipeline": 1, "profile.enabled": false, "recompute": "none", "sequenceLength": 2048, "steps":
  10, "wandb.project": null}` }}
{{- $path := splitList "." $key }}
{{- $value := index $v (first $path) }}
{{- if rest $path }}{{ $value = index $value (last $path) }}{{ end }}
{{- if eq $key "recompute" }}{{ $value = $fact.recompute.granularity }}{{ end }}
{{- /* A program that takes the batch of each process has that of all. */}}
{{- $names := dict "batch.global" "globalBatch|microBatch" "batch.micro" "microBatch" | dig $key $key }}
{{- $passed := regexMatch (printf "[$][(](%s)[)]" $names) (join " " $own.args) }}
{{- if not (or $passed (eq (toJson $value) (toJson $usual))) }}{{ $_ := set $fact "given" (append $fact.given $key) }}{{ end }}
{{- end }}
{{- $paths := include "onprem-p8000.paths" (list $config "") | fromYamlArray }}
{{- $owned := dict }}
{{- $_ := set $fact "overridden" list }}
{{- range $key, $natives := $launcher.owns }}
{{- /* Those of a program's own model do not reach it, where the program also takes the model of the values. */}}
{{- $ofModel := has (splitList "." $key | first) (list "model" "precision" "sequenceLength" "recompute") }}
{{- $reaches := or $fact.describesModel (not (hasKey $launcher.owns "model.layers")) (not $ofModel) }}
{{- range $native := $natives }}
{{- $_ := set $owned $native $key }}
{{- $places := and $reaches (has $native $paths) | ternary (list (printf "config.%s" $native)) list }}
{{- $pattern := printf "^[+~-]*%s([.=]|$)" (regexReplaceAll "[.]" $native "[.]") }}
{{- range $reaches | ternary ($own.args | default list) list }}{{ if regexMatch $pattern . }}{{ $places = append $places "args" }}{{ end }}{{ end }}
{{- range uniq $places }}
{{- $_ := set $fact "overridden" (append $fact.overridden (dict "place" . "option" $native "key" $key)) }}
{{- end }}
{{- end }}
{{- end }}
{{- $begun := list }}
{{- range keys $config | sortAlpha }}{{ $begun = append $begun (list (printf "config.%s" .) .) }}{{ end }}
{{- range $own.args }}
{{- if hasPrefix "--" . }}{{ $begun = append $begun (list "args" (trimPrefix "--" . | splitList "=" | first)) }}{{ end }}
{{- end }}
{{- $_ := set $fact "abbreviated" list }}
{{- range $each := $begun }}
{{- $name := last $each }}
{{- $option := "" }}
{{- range keys $owned | sortAlpha }}{{ if and (not $option) (hasPrefix $name .) }}{{ $option = . }}{{ end }}{{ end }}
{{- if and $name $option (not (hasKey $owned $name)) }}
{{- $_ := set $fact "abbreviated" (append $fact.abbreviated (dict "place" (first $each) "name" $name "option" $option "key" (get $owned $option))) }}
{{- end }}
{{- end }}
{{- range $fact_, $pattern := dict "samples" "^(train|lr-(decay|warmup))-samples$" "iterations" "^lr-(decay|warmup)-iters$" }}
{{- $found := list }}
{{- range keys $config | sortAlpha }}
{{- if and (regexMatch $pattern .) (not (kindIs "invalid" (get $config .))) }}{{ $found = append $found . }}{{ end }}
{{- end }}
{{- $_ := set $fact $fact_ $found }}
{{- end }}
{{- $fillings := append (include "onprem-p8000.fillings" $root | fromYaml | keys) "resume" }}
{{- $_ := set $fact "knownNames" list }}
{{- range sortAlpha $fillings }}{{ $_ := set $fact "knownNames" (append $fact.knownNames (printf "$(%s)" .)) }}{{ end }}
{{- $_ := set $fact "unknownNames" list }}
{{- range $own.args }}
{{- range regexFindAll "[$][(][A-Za-z]+[)]" (replace "$$(" "" .) -1 }}
{{- if not (has . $fact.knownNames) }}{{ $_ := set $fact "unknownNames" (append $fact.unknownNames .) }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The dotted path of each map and value of a configuration, as a YAML list. Takes (list tree prefix). */}}
{{- define "onprem-p8000.paths" }}
{{- $prefix := index . 1 }}
{{- range $key, $value := index . 0 }}
- {{ printf "%s%s" $prefix $key | toJson }}
{{- if kindIs "map" $value }}{{ include "onprem-p8000.paths" (list $value (printf "%s%s." $prefix $key)) }}{{ end }}
{{- end }}
{{- end }}

{{/* A whole number that is one, or is written as one; 0 for everything else. */}}
{{- define "onprem-p8000.wholeNumber" -}}
{{- if kindIs "string" . }}
{{- regexMatch "^[0-9]{1,15}$" . | ternary (regexReplaceAll "^0+([0-9])" . "${1}") "0" }}
{{- else if or (kindIs "int64" .) (kindIs "float64" .) (kindIs "int" .) }}
{{- $sound := and (ge (float64 .) 0.0) (lt (float64 .) 9007199254740992.0) (eq (float64 .) (floor .)) }}
{{- $sound | ternary (int64 .) 0 }}
{{- else }}0{{ end }}
{{- end }}

{{/* Bytes of a quantity such as 512Mi; 0 where it is none. */}}
{{- define "onprem-p8000.bytes" -}}
{{- $units := dict "" 1 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- if regexMatch "^[0-9]{1,11}([KMGT]i)?$" (toString .) }}
{{- mul (int64 (regexReplaceAll "^0+([0-9])" (regexFind "^[0-9]+" (toString .)) "${1}")) (get $units (regexFind "[A-Za-z]*$" (toString .))) }}
{{- else }}0{{ end }}
{{- end }}

{{/* Largest divisor of a number that is not above another, of those up to 4096. Takes (list number most). */}}
{{- define "onprem-p8000.divisor" -}}
{{- $number := index . 0 }}
{{- $found := 1 }}
{{- range untilStep (min (index . 1) $number 4096 | int) 1 -1 }}
{{- if not (mod $number .) }}{{ $found = . }}{{ break }}{{ end }}
{{- end }}
{{- $found }}
{{- end }}

{{/* Divisor of a number that is nearest to another, of those less than 4096 away. Takes (list number wanted). */}}
{{- define "onprem-p8000.nearest" -}}
{{- $number := index . 0 }}
{{- $wanted := min (index . 1) $number }}
{{- $found := 1 }}
{{- range untilStep 0 (min $wanted 4096 | int) 1 }}
{{- if not (mod $number (sub $wanted .)) }}{{ $found = sub $wanted . }}{{ break }}{{ end }}
{{- if and (le (add $wanted .) $number) (not (mod $number (add $wanted .))) }}{{ $found = add $wanted . }}{{ break }}{{ end }}
{{- end }}
{{- $found }}
{{- end }}

{{/* The multiples below and above a number, such as "8 or 16", or the one above alone. Takes (list unit number). */}}
{{- define "onprem-p8000.multiples" -}}
{{- $unit := max 1 (index . 0) }}
{{- $below := mul (div (index . 1) $unit) $unit }}
{{- if $below }}{{ $below }} or {{ end }}{{ add $below $unit }}
{{- end }}

{{/* Greatest common divisor. Takes (list number number). */}}
{{- define "onprem-p8000.gcd" -}}
{{- if index . 1 }}{{ include "onprem-p8000.gcd" (list (index . 1) (mod (index . 0) (index . 1))) }}{{ else }}{{ index . 0 }}{{ end }}
{{- end }}
