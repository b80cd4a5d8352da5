{{- if (get .Values.launchers "nemo-1").dllogger }}
# DLLogger is not part of every NeMo image; without it, step times are in NeMo's own log only.
if python3 -c 'import dllogger' 2>/dev/null; then
  mkdir -p "$RUN_DIRECTORY/dllogger/rank-$NODE_RANK"
  set -- "$@" \
    ++exp_manager.create_dllogger_logger=true \
    ++exp_manager.dllogger_logger_kwargs.verbose=true \
    ++exp_manager.dllogger_logger_kwargs.stdout=true \
    "++exp_manager.dllogger_logger_kwargs.json_file='$RUN_DIRECTORY/dllogger/rank-$NODE_RANK/dllogger.json'"
elif [[ $LOCAL_RANK == 0 ]]; then
  echo 'chartgen: this image has no DLLogger; add it for dllogger.json, or set launchers.nemo-1.dllogger=false' >&2
fi
{{- end }}
