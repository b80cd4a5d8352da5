{{/* The end of a machine's start script: torchrun starts one process for each GPU. */}}
{{- define "<%= chart %>.launch" }}
{{- include "<%= chart %>.beforeMeeting" . }}
# Each process leaves its number here.
CHARTGEN_PROCESSES=$(mktemp -d)
export CHARTGEN_PROCESSES

# Kubernetes' SIGTERM goes to the processes, which save and end. torchrun would kill them 30 s later whatever time the pod
# has, so it hears of SIGTERM at once only when there are no processes yet. Else it ends by itself when those of the other
# machines have ended too; where it still waits for them after 10 s it is told, and its exit code says nothing of its own.
command=
stopped=
ended=
# shellcheck disable=SC2329
stop() {
  local file pid tries=0
  stopped=yes
  shopt -s nullglob
  for file in "$CHARTGEN_PROCESSES"/*; do kill -TERM "$(<"$file")" || true; done
  for file in "$CHARTGEN_PROCESSES"/*; do
    pid=$(<"$file")
    while kill -0 "$pid"; do sleep 0.2; done
    tries=50 ended=yes
  done
  while ((tries-- > 0)) && kill -0 "$command"; do sleep 0.2; done
  kill -TERM "$command" || ended=
} 2>/dev/null
trap stop TERM

# Runs a command to its end; a run that was stopped ends with it, and has not succeeded, whatever its programs say.
run() {
  local code=0
  if [[ -n $stopped ]]; then exit 143; fi
  "$@" &
  command=$!
  # A trap interrupts wait; the exit code that counts is that of the command.
  while kill -0 "$command" 2>/dev/null; do wait "$command" || true; done
  wait "$command" || code=$?
  if [[ -n $ended ]]; then exit 143; fi
  if [[ -n $stopped ]]; then exit "$((code ? code : 143))"; fi
  return "$code"
}

# How torchrun starts processes on all machines: at a port, and under a name, that no other meeting of the run uses.
meet() {
  # shellcheck disable=SC2034
  local port=$1 name=${2-}
  launch=(
    torchrun
    --nnodes="$NNODES" --nproc-per-node="$GPUS_PER_NODE"
    {{- include "<%= chart %>.meeting" . | nindent 4 }}
  )
}
{{- if include "<%= chart %>.transport" . }}

# Does NCCL use the network that the chart promises? Told before the machines spend time on anything else.
{{ include "<%= chart %>.transportLog" . }}
mkdir -p "${said%/*}"
rm -f "$said"
meet "$((MASTER_PORT + 1))" -transport
code=0
run "${launch[@]}" --max-restarts=0 --no-python python3 -u /etc/chartgen/transport.py meet "$said" || code=$?
python3 /etc/chartgen/transport.py compare "$said" "$code"
{{- end }}

meet "$MASTER_PORT"
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
run "${launch[@]}" --no-python bash /etc/chartgen/rank.sh "$@"
{{- end }}

{{/* torchrun sets the rank's variables itself. */}}
{{- define "<%= chart %>.rankVariables" }}
{{- end }}

{{/* What its processes do before they train is the start script's to say. */}}
{{- define "<%= chart %>.transportRank" }}
{{- end }}

{{/* For the start script, which hands on SIGTERM. */}}
{{- define "<%= chart %>.rankProcess" }}
echo "$$" >"$CHARTGEN_PROCESSES/$LOCAL_RANK"
{{- end }}
