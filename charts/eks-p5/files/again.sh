# torchrun starts its processes again whatever their exit code was; after a final one, and without progress, it ends.
if ((LOCAL_RANK == 0)); then
  code=$(cat "$CHARTGEN_PROCESSES.code" 2>/dev/null || true)
  if [[ " FINAL " == *" $code "* ]]; then end "$code"; fi
  rm -f "$CHARTGEN_PROCESSES.code"
  progress || end "$?"
fi
