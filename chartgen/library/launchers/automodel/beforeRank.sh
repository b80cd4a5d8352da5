{{- if .Values.checkpoint.enabled }}
# A save that was interrupted leaves its directory, without the settings that are written last. AutoModel 0.5 would stop
# when it comes to that step again, and without LATEST it would resume from there.
if ((RANK == 0)); then
  latest=$(readlink "$CHECKPOINT_DIRECTORY/LATEST" || cat "$CHECKPOINT_DIRECTORY/LATEST.txt" 2>/dev/null || true)
  latest=${latest##*_}
  for folder in "$CHECKPOINT_DIRECTORY"/epoch_*; do
    if [[ $folder =~ /epoch_[0-9]+_step_([0-9]+)$ ]] &&
      [[ ! -e $folder/config.yaml || ${BASH_REMATCH[1]} -gt ${latest:-${BASH_REMATCH[1]}} ]]; then
      echo "chartgen: $folder was not completed; it moves to $CHECKPOINT_DIRECTORY/unfinished"
      rm -rf "$CHECKPOINT_DIRECTORY/unfinished/${folder##*/}"
      mkdir -p "$CHECKPOINT_DIRECTORY/unfinished"
      mv "$folder" "$CHECKPOINT_DIRECTORY/unfinished"
    fi
  done
fi
{{- end }}
