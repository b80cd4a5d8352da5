#!/usr/bin/env bash
# Starts one process. Arguments: the program and its own arguments.
set -euo pipefail
echo "$$" >"$CHARTGEN_PROCESSES/$LOCAL_RANK"
# Ends this machine's launcher instead of its next start; ft_launcher leaves by itself when its machine is not fit.
# shellcheck disable=SC2329
end() {
  echo "$1" >"$CHARTGEN_PROCESSES.code"
  if (($1 != 69)) || [[ ! -v FT_LAUNCHER_IPC_SOCKET ]]; then kill -TERM "$PPID"; fi
  exit "$1"
}
