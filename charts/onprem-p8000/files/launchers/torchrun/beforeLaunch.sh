# Every machine looks before any process starts, so all of them see the same.
RESUME=false
if [[ -n $(ls -A "$CHECKPOINT_DIRECTORY") ]]; then RESUME=true; fi
export RESUME
if [[ -n ${PROGRAM_DIRECTORY-} ]]; then cd "$PROGRAM_DIRECTORY"; fi
