#!/usr/bin/env bash
# Starts one process. Arguments: the program and its own arguments.
set -euo pipefail
echo "$$" >"$CHARTGEN_PROCESSES/$LOCAL_RANK"
