#!/usr/bin/env bash
# Checks whether NCCL uses the network that the chart promises; the first process of each machine reports it.
set -euo pipefail
<%= common("_variables.sh") %>
log=$RUN_DIRECTORY/transport/machine-$NODE_RANK.log
mkdir -p "${log%/*}"
if ((LOCAL_RANK == 0)); then rm -f "$log"; fi
code=0
python3 -u /etc/chartgen/transport.py meet "$log" || code=$?
if ((LOCAL_RANK == 0)); then python3 /etc/chartgen/transport.py compare "$log" "$code"; fi
