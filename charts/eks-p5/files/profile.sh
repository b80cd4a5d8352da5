# Nsight Systems runs on the machines of profiled ranks and ends with the capture range of the trainer.
profiled=" RANKS "
for ((rank = NODE_RANK * GPUS_PER_NODE; rank < (NODE_RANK + 1) * GPUS_PER_NODE; rank++)); do
  if [[ $profiled == *" $rank "* ]]; then
    launch=(
      nsys profile -s none -t "nvtx,cuda" --capture-range=cudaProfilerApi --capture-range-end=stop
      --force-overwrite=true -o "$RUN_DIRECTORY/noderank-$NODE_RANK" "${launch[@]}"
    )
    break
  fi
done
