# Checks whether NCCL uses the network that the chart promises, before the machines spend time on anything else.
log=$RUN_DIRECTORY/transport/machine-$NODE_RANK.log
mkdir -p "${log%/*}"
rm -f "$log"
meet "$((MASTER_PORT + 1))" -transport
code=0
run "${launch[@]}" --max-restarts=0 --no-python python3 -u /etc/chartgen/transport.py meet "$log" || code=$?
# a spare did not meet the others, and has no log
if [[ -e $log ]] || ((code)); then python3 /etc/chartgen/transport.py compare "$log" "$code"; fi
