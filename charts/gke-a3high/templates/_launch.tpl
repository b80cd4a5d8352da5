{{/* The end of a machine's start script: torchrun starts one process for each GPU. */}}
{{- define "gke-a3high.launch" }}
{{- include "gke-a3high.beforeMeeting" . }}
launch=(
  torchrun
  --nnodes="$NNODES" --nproc-per-node="$GPUS_PER_NODE"
  {{- include "gke-a3high.meeting" . | nindent 2 }}
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
exec "${launch[@]}" --no-python bash /etc/chartgen/rank.sh "$@"
{{- end }}

{{/* torchrun sets the rank's variables itself. */}}
{{- define "gke-a3high.rankVariables" }}
{{- end }}
