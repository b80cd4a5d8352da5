# Checks whether NCCL uses the network that the chart promises, before the machines spend time on anything else.
# Others may write to the run's storage, so the log is compared here, and then kept there.
log=$(mktemp -d)/machine-$NODE_RANK.log
meet "$((MASTER_PORT + 1))" -transport
code=0
run "${launch[@]}" --max-restarts=0 --no-python python3 -u /etc/chartgen/transport.py meet "$log" || code=$?
# a spare did not meet the others, and has no log; the verdict is for the black box too
if [[ -e $log ]] || ((code)); then
  python3 /etc/chartgen/transport.py compare "$log" "$code" "$RUN_DIRECTORY/transport" 2>&1 |
    tee -a "$CHARTGEN_PRELUDE"
fi
