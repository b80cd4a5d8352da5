# Before processes start again, the machine is examined once more; a spare too, when it takes a place.
if ((TORCHELASTIC_RESTART_COUNT)); then
  examined=$CHARTGEN_PROCESSES.examined-$TORCHELASTIC_RESTART_COUNT
  if ((LOCAL_RANK == 0)); then
    EXAMINE || end "$?"
    touch "$examined"
  fi
  until [[ -e $examined ]]; do sleep 0.2; done
fi
