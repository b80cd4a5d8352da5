#!/usr/bin/env bash
# Starts one process. Arguments: the program and its own arguments.
set -euo pipefail
<%= common("_variables.sh") %>
# shellcheck disable=SC2154
set -- "${arguments[@]}"
# Under a profiler the profiler's number stays; that of an earlier attempt does not.
[[ -n ${PROFILED-} ]] || echo "$$ $PPID" >"/run/chartgen/ranks/$LOCAL_RANK"
