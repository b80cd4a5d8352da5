#!/usr/bin/env bash
# Starts this machine's part of the run. Arguments: the program and its own arguments, passed on unchanged.
set -euo pipefail

release_variables=(RELEASE_VARIABLES)

# Output before the program starts; the black box contains it.
CHARTGEN_PRELUDE=$(mktemp)
export CHARTGEN_PRELUDE

# Ends this machine, where no start of its program could succeed.
# shellcheck disable=SC2329
refuse() {
  echo "chartgen: $1" | tee -a "$CHARTGEN_PRELUDE" >&2
  exit 78
}

# Reads a vendor's environment profile; what the release sets itself keeps its value. Vendors write profiles for shells
# that go on after a command that fails.
# shellcheck disable=SC2329
source_profile() {
  local -A own=()
  local name
  if [[ ! -r $1 ]]; then refuse "$1 is missing: the vendor's software was not installed"; fi
  for name in "${release_variables[@]}"; do own[$name]=${!name-}; done
  set +eu +o pipefail
  # shellcheck disable=SC1090
  source "$1"
  set -euo pipefail
  for name in "${!own[@]}"; do export "$name=${own[$name]}"; done
}

: "${NODE_RANK:?is the number of this pod, from its label}"

# Others may write to the storage of the outputs: no link there leads what this machine writes elsewhere.
if [[ ${RUN_DIRECTORY-} == */outputs/* ]]; then
  outputs=$(readlink -m "${RUN_DIRECTORY%%/outputs/*}/outputs")
  for path in "$RUN_DIRECTORY" "$CHECKPOINT_DIRECTORY"; do
    if [[ $(readlink -m "$path") != "$outputs"/* ]]; then
      echo "chartgen: $path leads out of $outputs by a link; remove it" >&2
      exit 1
    fi
    mkdir -p "$path" 2>/dev/null || true
  done
fi
