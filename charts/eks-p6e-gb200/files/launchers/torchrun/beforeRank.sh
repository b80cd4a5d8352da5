# torchrun starts processes again without this machine's start script.
if ((${TORCHELASTIC_RESTART_COUNT:-0} > 0)) && [[ -n $(ls -A "$CHECKPOINT_DIRECTORY") ]]; then RESUME=true; fi
# shellcheck disable=SC2016
set -- "${@//'$(resume)'/$RESUME}"
