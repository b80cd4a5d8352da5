{{/* What policies want of every pod and object: <%= policies | join(", ") %>. */}}
{{- define "<%= chart %>.policy" -}}
<%= policy %>
{{- end }}

{{/* The objects of a file as the policies want them. Takes (list root definition). */}}
{{- define "<%= chart %>.obeying" -}}
{{- $root := index . 0 }}
{{- $policy := include "<%= chart %>.policy" $root | fromYaml }}
{{- with $policy.Error }}{{ fail (printf "a policy is not YAML: %s" .) }}{{ end }}
{{- range regexSplit "(?m)^---[ \t]*$" (include (index . 1) $root) -1 }}
{{- $text := . }}
{{- with fromYaml . }}
{{- with .Error }}{{ fail (printf "an object is not YAML: %s" .) }}{{ end }}
{{- range prepend (eq .kind "List" | ternary .items list) . }}{{ include "<%= chart %>.marked" (list $policy .) }}{{ end }}
{{- if not (has .kind (list "ConfigMap" "Secret")) }}{{ include "<%= chart %>.obey" (list $policy .) }}{{ end }}
---
{{- range regexFindAll "(?m)# chartgen: ignore.*$" $text -1 | uniq }}
{{ . }}
{{- end }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Adds labels and annotations to an object or a pod. Takes (list policy object). */}}
{{- define "<%= chart %>.marked" -}}
{{- $policy := index . 0 }}
{{- $object := index . 1 }}
{{- $metadata := $object.metadata | default dict }}
{{- range $field := list "labels" "annotations" }}
{{- $own := get $metadata $field | default dict }}
{{- include "<%= chart %>.override" (list $own (get $policy $field)) }}
{{- with $own }}{{ $_ := set $metadata $field . }}{{ end }}
{{- end }}
{{- $_ := set $object "metadata" $metadata }}
{{- end }}

{{/* Sets the keys of a map in another one, below too; sprig's merge takes "" and [] for absent. Takes (list own wanted). */}}
{{- define "<%= chart %>.override" -}}
{{- $own := index . 0 }}
{{- range $key, $value := index . 1 }}
{{- $known := get $own $key }}
{{- if and (kindIs "map" $known) (kindIs "map" $value) }}
{{- include "<%= chart %>.override" (list $known $value) }}
{{- else if not (kindIs "invalid" $value) }}
{{- $_ := set $own $key $value }}
{{- end }}
{{- end }}
{{- end }}

{{/* Changes the pods and images of a part of an object. Takes (list policy part). */}}
{{- define "<%= chart %>.obey" -}}
{{- $policy := index . 0 }}
{{- $part := index . 1 }}
{{- if kindIs "map" $part }}
{{- if and (kindIs "map" $part.spec) (kindIs "slice" ($part.spec | default dict).containers) }}
{{- include "<%= chart %>.obeyingPod" (list $policy $part) }}
{{- end }}
{{- /* A container's image is a text, a volume's a map. */}}
{{- $volume := kindIs "map" $part.image }}
{{- $holder := $volume | ternary $part.image $part }}
{{- $key := $volume | ternary "reference" "image" }}
{{- with get $holder $key }}{{ if kindIs "string" . }}
{{- $_ := set $holder $key (include "<%= chart %>.mirrored" (list $policy .)) }}
{{- end }}{{ end }}
{{- end }}
{{- if or (kindIs "map" $part) (kindIs "slice" $part) }}
{{- range $part }}{{ include "<%= chart %>.obey" (list $policy .) }}{{ end }}
{{- end }}
{{- end }}

{{/* Adds the parts of every pod. Takes (list policy pod). */}}
{{- define "<%= chart %>.obeyingPod" -}}
{{- $policy := index . 0 }}
{{- $pod := index . 1 }}
{{- $want := $policy.pod.spec | default dict }}
{{- $marks := $policy.pod.metadata | default dict }}
{{- include "<%= chart %>.marked" (list $policy $pod) }}
{{- include "<%= chart %>.marked" (list (dict "labels" $marks.labels "annotations" $marks.annotations) $pod) }}
{{- $others := omit $want "tolerations" "affinity" "volumes" "initContainers" "containers" }}
{{- $spec := $pod.spec }}
{{- include "<%= chart %>.override" (list $spec (deepCopy $others)) }}
{{- with $want.tolerations }}{{ $_ := set $spec "tolerations" (concat ($spec.tolerations | default list) . | uniq) }}{{ end }}
{{- with $want.affinity }}
{{- $_ := set $spec "affinity" (include "<%= chart %>.bothAffinities" (list ($spec.affinity | default dict) .) | fromYaml) }}
{{- end }}
{{- range $name := list "volumes" "initContainers" "containers" }}
{{- with get $want $name }}
{{- $joined := dict "own" (get $spec $name) "want" (deepCopy .) "key" "name" "first" (eq $name "initContainers") }}
{{- include "<%= chart %>.joined" $joined }}
{{- $_ := set $spec $name $joined.items }}
{{- end }}
{{- end }}
{{- range concat ($spec.initContainers | default list) $spec.containers }}
{{- include "<%= chart %>.obeyingContainer" (list $policy .) }}
{{- end }}
{{- end }}

{{/* Adds the parts of every container. Takes (list policy container). */}}
{{- define "<%= chart %>.obeyingContainer" -}}
{{- $policy := index . 0 }}
{{- $container := index . 1 }}
{{- $want := $policy.container }}
{{- $env := dict "own" $container.env "key" "name" "want" list "first" false }}
{{- range $policy.variables }}
{{- $given := hasKey . "value" | ternary (dict "value" (toString .value | replace "$" "$$")) (omit . "name") }}
{{- $_ := set $env "want" (append $env.want (set $given "name" .name)) }}
{{- end }}
{{- range $name, $joined := dict "env" $env "volumeMounts" (dict "own" $container.volumeMounts "want" $want.volumeMounts "key" "mountPath" "first" false) }}
{{- if $joined.want }}
{{- include "<%= chart %>.joined" $joined }}
{{- $_ := set $container $name $joined.items }}
{{- end }}
{{- end }}
{{- include "<%= chart %>.override" (list $container (deepCopy (pick $want "securityContext"))) }}
{{- end }}

{{/* Sets `items` of a map: its lists `own` and `want`, of which `want` wins where `key` is the same. */}}
{{- define "<%= chart %>.joined" -}}
{{- $key := .key }}
{{- $names := list }}
{{- range .want }}{{ $names = append $names (get . $key) }}{{ end }}
{{- $left := list }}
{{- range .own | default list }}{{ if not (has (get . $key) $names) }}{{ $left = append $left . }}{{ end }}{{ end }}
{{- $_ := set . "items" (.first | ternary (concat .want $left) (concat $left .want)) }}
{{- end }}

{{/* A pod's affinity and the policies': all of both must be met. Takes (list own wanted). */}}
{{- define "<%= chart %>.bothAffinities" -}}
{{- $own := index . 0 }}
{{- range $kind, $fields := index . 1 }}
{{- $ours := get $own $kind | default dict }}
{{- range $field, $rules := $fields }}
{{- $known := get $ours $field }}
{{- if not $known }}
{{- $_ := set $ours $field $rules }}
{{- else if kindIs "slice" $rules }}
{{- $_ := set $ours $field (concat $known $rules) }}
{{- else }}
{{- /* A node fits if one of the terms does, so each term gets the conditions of each. */}}
{{- $terms := list }}
{{- range $term := $known.nodeSelectorTerms }}
{{- range $other := $rules.nodeSelectorTerms }}
{{- $both := dict }}
{{- range $part := list "matchExpressions" "matchFields" }}
{{- with concat (get $term $part | default list) (get $other $part | default list) }}{{ $_ := set $both $part . }}{{ end }}
{{- end }}
{{- $terms = append $terms $both }}
{{- end }}
{{- end }}
{{- $_ := set $ours $field (dict "nodeSelectorTerms" $terms) }}
{{- end }}
{{- end }}
{{- $_ := set $own $kind $ours }}
{{- end }}
{{- toYaml $own }}
{{- end }}

{{/* An image's name with its registry. */}}
{{- define "<%= chart %>.fullName" -}}
{{- if not (regexMatch "^([^/]*[.:][^/]*|localhost)/" .) }}docker.io/{{ contains "/" . | ternary "" "library/" }}{{ end }}{{ . }}
{{- end }}

{{/* An image of a mirror; one without a registry is of Docker Hub. Takes (list policy image). */}}
{{- define "<%= chart %>.mirrored" -}}
{{- $policy := index . 0 }}
{{- $image := index . 1 }}
{{- $full := include "<%= chart %>.fullName" $image }}
{{- $found := "" }}
{{- range $policy.images }}
{{- if and (not $found) (regexMatch (printf "^%s(/|[:@][^/]*$|$)" (regexQuoteMeta .from)) $full) }}
{{- $found = printf "%s%s" .to (trimPrefix .from $full) }}
{{- end }}
{{- end }}
{{- $found = $found | default $image }}
{{- $full = include "<%= chart %>.fullName" $found }}
{{- $allowed := empty $policy.registries }}
{{- range $policy.registries }}
{{- if regexMatch (printf "^%s(/|[:@][^/]*$|$)" (regexQuoteMeta .)) $full }}{{ $allowed = true }}{{ end }}
{{- end }}
{{- if not $allowed }}
{{- fail (printf "image %s is of no registry that policies allow: %s" $found (join ", " $policy.registries)) }}
{{- end }}
{{- $found }}
{{- end }}
