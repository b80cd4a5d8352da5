# One worker for each share of the work; the first that fails ends the others.
: "${WORKERS:?is the number of workers of this pod}"
workers=()
trap 'kill "${workers[@]}" 2>/dev/null || true' EXIT
trap 'exit 143' TERM
for ((worker = 0; worker < WORKERS; worker++)); do
  RANK=$((NODE_RANK * WORKERS + worker)) WORLD_SIZE=$((NNODES * WORKERS)) INTERPRETER "$@" &
  workers+=("$!")
done
for ((worker = 0; worker < WORKERS; worker++)); do wait -n; done
