# A run that fails in the same way each time ends, instead of at the last of its restarts. JobSet counts restarts after
# failures only, so a run that was preempted continues.
if ((NODE_RANK == 0)); then
  saved=$(cd "$CHECKPOINT_DIRECTORY" && { find . -maxdepth 2 | sort && cat ./latest* 2>/dev/null || true; } | cksum)
  starts=$RUN_DIRECTORY/starts
  grep -q "^$RESTART_ATTEMPT " "$starts" 2>/dev/null || echo "$RESTART_ATTEMPT $saved" >>"$starts"
  if (($(grep -c " $saved\$" "$starts") > 3)); then
    echo "chartgen: 3 restarts without a new checkpoint: the run ends; \`chartgen why\` shows the cause" >&2
    exit 93
  fi
fi
