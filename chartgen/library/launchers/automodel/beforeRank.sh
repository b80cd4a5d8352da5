{{- if .Values.checkpoint.enabled }}
# A save that was interrupted leaves its directory, without the settings that are written last. AutoModel 0.5 would stop
# when it comes to that step again, and without LATEST it would resume from there.
if ((RANK == 0)); then
  # Others may write there: this is a name in a small file, a number is not calculated, and a link leads elsewhere.
  name=(find "$CHECKPOINT_DIRECTORY" -maxdepth 1 -type f -name LATEST.txt -size -9 -exec cat '{}' +)
  latest=$({ readlink "$CHECKPOINT_DIRECTORY/LATEST" || "${name[@]}"; } 2>/dev/null | tr -d '\0' || true)
  latest=${latest##*_}
  if [[ ! $latest =~ ^[0-9]{1,18}$ ]]; then latest=; fi
  if [[ -L $CHECKPOINT_DIRECTORY/unfinished ]]; then rm "$CHECKPOINT_DIRECTORY/unfinished"; fi
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
