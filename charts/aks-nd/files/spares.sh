# After one of these codes no start of the processes can succeed, and watch.py ends their launcher.
export ENDING_EXITS="FINAL"
# How machines meet some of which are spares: NVIDIA's launcher starts all processes again when a machine is lost, with a
# spare in its place. GROUP_RANK keeps ranks in the order of machines; whoever comes late is a spare. Who has sent a
# heartbeat must send others. Megatron-LM's --enable-ft-package and NeMo report sections, which end in time, but after
# watch.py, which prints stacks.
meet() {
  local port=$1 name=${2-} limit=${HANG_SECONDS:-3600}
  local late=$((limit + 10))
  export GROUP_RANK=$NODE_RANK
  # shellcheck disable=SC2034
  launch=(
    ft_launcher
    --nnodes="$NNODES:PODS" --nproc-per-node="$GPUS_PER_NODE" --max-restarts=RESTARTS
    --rdzv-backend=c10d --rdzv-endpoint="$MASTER_ADDR:$port" --rdzv-id="run$name"
    --rdzv-conf="is_host=$((NODE_RANK == 0))"
    --ft-rank-heartbeat-timeout="$limit"
    --ft-rank-section-timeouts="setup:${FIRST_STEP_SECONDS:-7200},step:$late,checkpointing:$late"
    --ft-rank-out-of-section-timeout="$late" SEGMENT
  )
}

# A launcher reports success also when it leaves because its machine is not healthy (0.6.0, launcher.py). The run has ended
# when the first machine, where all meet, does not listen any more. That machine stays a while: a Job of which a pod has
# failed must be complete before all others have ended, else it fails then.
leave() {
  local tries=30
  if [[ -s $CHARTGEN_PROCESSES.code && $(<"$CHARTGEN_PROCESSES.code") == 69 ]]; then exit 69; fi
  if ((NODE_RANK == 0)); then
    sleep 30 &
    wait "$!" || true
    return
  fi
  while (: <>"/dev/tcp/$MASTER_ADDR/$MASTER_PORT") 2>/dev/null; do
    if ((tries-- == 0)); then
      echo "examine: machine $NODE_RANK (${HOSTNAME-}) is not fit: ft_launcher left it, and the run continues" >&2
      exit 69
    fi
    sleep 1
  done
}
