# How machines meet some of which are spares: NVIDIA's launcher starts all processes again when a machine is lost, with a
# spare in its place. GROUP_RANK keeps ranks in the order of machines; whoever comes late is a spare.
meet() {
  local port=$1 name=${2-}
  export GROUP_RANK=$NODE_RANK
  # shellcheck disable=SC2034
  launch=(
    ft_launcher
    --nnodes="$NNODES:PODS" --nproc-per-node="$GPUS_PER_NODE" --max-restarts=RESTARTS
    --rdzv-backend=c10d --rdzv-endpoint="$MASTER_ADDR:$port" --rdzv-id="run$name"
    --rdzv-conf="is_host=$((NODE_RANK == 0))"
  )
}
