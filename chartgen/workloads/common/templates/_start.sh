{{/* Start script of every machine. Values reach it as variables and arguments only, never as text of the script. */}}
{{- define "<%= chart %>.start" -}}
#!/usr/bin/env bash
# Starts this machine's part of the run. Arguments: the program and its own arguments, passed on unchanged.
set -euo pipefail

release_variables=({{ include "<%= chart %>.env" . | fromYamlArray | include "<%= chart %>.names" }})

# Reads a vendor's environment profile; what the release sets itself keeps its value.
source_profile() {
  local -A own=()
  local name
  for name in "${release_variables[@]}"; do own[$name]=${!name-}; done
  set +u
  # shellcheck disable=SC1090
  source "$1"
  set -u
  for name in "${!own[@]}"; do export "$name=${own[$name]}"; done
}

export NODE_RANK=${JOB_COMPLETION_INDEX:?is set by Kubernetes in the pods of an Indexed Job}
mkdir -p "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"
<%= slot("beforeLaunch.sh", 0) %>
{{- include (printf "<%= chart %>.launcher.%s.beforeLaunch" .Values.launcher) . }}
launch=(
  torchrun
  --nnodes="$NNODES" --nproc-per-node="$GPUS_PER_NODE" --node-rank="$NODE_RANK"
  --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT"
)
{{- if .Values.profile.enabled }}
# Nsight Systems runs on the machines that hold a profiled rank and ends with the capture range of the trainer.
profiled=" {{ join " " .Values.profile.ranks }} "
for ((rank = NODE_RANK * GPUS_PER_NODE; rank < (NODE_RANK + 1) * GPUS_PER_NODE; rank++)); do
  if [[ $profiled == *" $rank "* ]]; then
    launch=(
      nsys profile -s none -t "nvtx,cuda" --capture-range=cudaProfilerApi --capture-range-end=stop
      --force-overwrite=true -o "$RUN_DIRECTORY/noderank-$NODE_RANK" "${launch[@]}"
    )
    break
  fi
done
{{- end }}
# exec: torchrun gets Kubernetes' SIGTERM, and its exit code is the container's.
exec "${launch[@]}" "$@"
{{- end }}

{{/* Names of variables, as words. */}}
{{- define "<%= chart %>.names" -}}
{{- range $i, $entry := . }}{{ if $i }} {{ end }}{{ $entry.name }}{{ end }}
{{- end }}
