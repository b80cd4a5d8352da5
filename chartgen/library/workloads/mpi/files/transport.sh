#!/usr/bin/env bash
# Checks whether NCCL uses the network that the chart promises; the first process of each machine reports it.
set -euo pipefail
<%= common("_variables.sh") %>
# Others may write to the run's storage, so the log is compared here, and then kept there.
log=$(mktemp -d)/machine-$NODE_RANK.log
code=0
python3 -u /etc/chartgen/transport.py meet "$log" || code=$?
if ((LOCAL_RANK == 0)); then python3 /etc/chartgen/transport.py compare "$log" "$code" "$RUN_DIRECTORY/transport"; fi
