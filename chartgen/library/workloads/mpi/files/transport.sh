#!/usr/bin/env bash
# Checks whether NCCL uses the network that the chart promises; the first process of each machine reports it.
set -euo pipefail
<%= common("_variables.sh") %>
# Others may write to the run's storage, so the log is compared here, and then kept there.
log=$(mktemp -d)/machine-$NODE_RANK.log
code=0
python3 -u /etc/chartgen/transport.py meet "$log" || code=$?
if ((LOCAL_RANK)); then exit; fi
verdict=0
python3 /etc/chartgen/transport.py compare "$log" "$code" "$RUN_DIRECTORY/transport" 2>&1 |
  tee -a "$CHARTGEN_PRELUDE" || verdict=$?
# The start script, which leaves a black box elsewhere, serves ssh here.
if ((verdict)) && [[ -e /etc/chartgen/watch.py ]]; then python3 /etc/chartgen/watch.py --ended "$verdict" || true; fi
exit "$verdict"
