# A run that fails in the same way each time ends, instead of at the last of its restarts. Where a controller counts
# failures only, a run that was preempted has the number of its attempt once more. Without a record, each attempt counts.
if ((${RANK-$NODE_RANK} == 0)); then
  attempt=${RESTART_ATTEMPT:-${MPI_ATTEMPT:-${TORCHELASTIC_RESTART_COUNT:-0}}}
  starts=$RUN_DIRECTORY/starts
  # Others may write to this storage: a pipe, a device or a long line would keep cat and grep, a link leads elsewhere.
  content=(find . -maxdepth 1 -type f -name 'latest*' -size -9 -exec cat '{}' +)
  saved=$({ cd "$CHECKPOINT_DIRECTORY" && { find . -maxdepth 2; "${content[@]}"; } | sort; } 2>/dev/null | cksum || true)
  same=$((attempt + 1))
  if [[ (-L $starts || -e $starts) && -z $(find "$starts" -maxdepth 0 -type f -size -2048) ]]; then
    :
  elif grep -q "^$attempt " "$starts" 2>/dev/null || echo "$attempt $saved" 2>/dev/null >>"$starts"; then
    same=$(grep -c " $saved\$" "$starts" || true)
  fi
  if ((same > 3)); then
    echo "chartgen: 3 starts in a row brought no new checkpoint: the run ends; \`chartgen why\` shows the cause" >&2
    exit 93
  fi
fi
