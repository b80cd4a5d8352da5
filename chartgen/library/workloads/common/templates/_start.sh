{{/* Start script of every machine. Values reach it as variables and arguments only, never as text of the script. */}}
{{- define "<%= chart %>.start" -}}
{{- $launcher := include "<%= chart %>.launcher" . | fromYaml -}}
#!/usr/bin/env bash
# Starts this machine's part of the run. Arguments: the program and its own arguments, passed on unchanged.
set -euo pipefail

release_variables=({{ include "<%= chart %>.env" . | fromYamlArray | include "<%= chart %>.names" }})

# Reads a vendor's environment profile; what the release sets itself keeps its value. Vendors write profiles for shells
# that go on after a command that fails.
source_profile() {
  local -A own=()
  local name
  if [[ ! -r $1 ]]; then
    echo "chartgen: $1 is missing: the vendor's software was not installed" >&2
    exit 1
  fi
  for name in "${release_variables[@]}"; do own[$name]=${!name-}; done
  set +eu +o pipefail
  # shellcheck disable=SC1090
  source "$1"
  set -euo pipefail
  for name in "${!own[@]}"; do export "$name=${own[$name]}"; done
}

: "${NODE_RANK:?is the number of this pod, from its label}"
{{- if include "<%= chart %>.gpu" . }}
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
{{- if include "<%= chart %>.staged" . }}

# Copies the data to this machine's own disk; what an earlier run has copied completely stays.
stage() {
  local from=$1 to=/scratch$1
  if [[ ! -s $from ]]; then
    echo "chartgen: data.stage: $from is missing or empty; prepare the data first" >&2
    return 1
  fi
  if [[ -e $to && $(stat -c '%s %Y' "$to") == "$(stat -c '%s %Y' "$from")" ]]; then return; fi
  echo "chartgen: copying $from to $to"
  mkdir -p "${to%/*}"
  cp --preserve=timestamps "$from" "$to.part"
  mv "$to.part" "$to"
}
# The lock makes pods wait that share a machine; it ends with the copy, not with the run.
exec {lock}>/scratch/.staging
flock "$lock"
while IFS= read -r prefix; do
  stage "$prefix.bin"
  stage "$prefix.idx"
done <<<"$STAGED_DATA"
exec {lock}>&-
{{- end }}
{{- end }}
<%= slot("beforeLaunch.sh", 0) %>
{{- include (printf "<%= chart %>.launcher.%s.beforeLaunch" .Values.launcher) . }}
{{- if eq $launcher.processes "gpu" }}
{{ include "<%= chart %>.launch" . | trim }}
{{- else if eq $launcher.processes "one" }}
# exec: the program gets Kubernetes' SIGTERM, and its exit code is the container's.
exec {{ include "<%= chart %>.interpreter" $launcher.program }} "$@"
{{- else }}

# One worker for each share of the work; the first that fails ends the others.
: "${WORKERS:?is the number of workers of this pod}"
workers=()
trap 'kill "${workers[@]}" 2>/dev/null || true' EXIT
trap 'exit 143' TERM
for ((worker = 0; worker < WORKERS; worker++)); do
  RANK=$((NODE_RANK * WORKERS + worker)) WORLD_SIZE=$((NNODES * WORKERS)) {{ include "<%= chart %>.interpreter" $launcher.program }} "$@" &
  workers+=("$!")
done
for ((worker = 0; worker < WORKERS; worker++)); do wait -n; done
{{- end }}
{{- end }}

{{/* Script of every process of a GPU program: it knows its rank, and becomes the program. */}}
{{- define "<%= chart %>.rank" -}}
#!/usr/bin/env bash
# Starts one process. Arguments: the program and its own arguments.
set -euo pipefail
{{- include "<%= chart %>.rankVariables" . }}
{{- include "<%= chart %>.rankProcess" . }}
{{- include (printf "<%= chart %>.launcher.%s.beforeRank" .Values.launcher) . }}
exec {{ include "<%= chart %>.interpreter" (include "<%= chart %>.launcher" . | fromYaml).program }} "$@"
{{- end }}

{{/* What runs a program: its name tells. */}}
{{- define "<%= chart %>.interpreter" -}}
{{- hasSuffix ".sh" . | ternary "bash" "python3 -u" }}
{{- end }}

{{/* Names of variables, as words. */}}
{{- define "<%= chart %>.names" -}}
{{- range $i, $entry := . }}{{ if $i }} {{ end }}{{ $entry.name }}{{ end }}
{{- end }}
