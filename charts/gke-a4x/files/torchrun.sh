# Each process leaves its number here.
CHARTGEN_PROCESSES=$(mktemp -d)
export CHARTGEN_PROCESSES

# Kubernetes' SIGTERM goes to the processes, which save and end. torchrun would kill them 30 s later whatever time the pod
# has, so it gets SIGTERM at once only while it has no processes yet. Else it ends by itself when those of the other
# machines have ended too; if it still waits for them after 10 s it gets SIGTERM, and its exit code is ignored.
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

# Runs a command to its end; a run that was stopped ends with it, and has not succeeded, whatever its programs report.
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
    RENDEZVOUS
  )
}
