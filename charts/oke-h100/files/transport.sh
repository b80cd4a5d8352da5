#!/usr/bin/env bash
# Checks whether NCCL uses the network that the chart promises; the first process of each machine reports it.
set -euo pipefail
meeting=$MASTER_ADDR
# shellcheck disable=SC1091
source /run/chartgen/launch
cd "$PWD"
export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE
export LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK LOCAL_WORLD_SIZE=$OMPI_COMM_WORLD_LOCAL_SIZE
export GROUP_RANK=$((RANK / LOCAL_WORLD_SIZE)) GROUP_WORLD_SIZE=$NNODES
export NODE_RANK=$GROUP_RANK MASTER_ADDR=$meeting
# By this name Lightning knows that the variables above count. Otherwise it asks MPI, and the ranks would meet at the
# host name of a machine, which no DNS knows, and at a random port.
export TORCHELASTIC_RUN_ID=$RUN_DIRECTORY
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
