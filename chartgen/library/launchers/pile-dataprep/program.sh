#!/usr/bin/env bash
# Arguments: the tool and its arguments. This rank handles the files whose number leaves RANK when divided by WORLD_SIZE.
set -euo pipefail
shopt -s inherit_errexit

log() { echo "chartgen: rank $RANK: $*"; }

# Fetches into a file, from where an earlier attempt stopped. The token is for the hub alone, and comes through a pipe: no
# list of processes has it.
fetch() {
  local attempt code=0 hub=${HF_ENDPOINT:-https://huggingface.co}
  for ((attempt = 0; attempt < 5; attempt++)); do
    code=0
    curl --proto =http,https --proto-redir "=${1%%:*},https" --fail --location --no-progress-meter \
      --retry 8 --retry-connrefused --continue-at - --output "$2" \
      --config <(if [[ -n ${HF_TOKEN-} && $1 == "${hub%/}"/* ]]; then echo "header = \"Authorization: Bearer $HF_TOKEN\""; fi) "$1" || code=$?
    # curl does not repeat transfers that broke off (18, 56) by itself.
    if [[ $code != 18 && $code != 56 ]]; then break; fi
  done
  # The server has no such file, or no more of it than is here.
  if [[ $code == 22 ]]; then rm -f "$2"; fi
  return "$code"
}

unpack() {
  if command -v zstd >/dev/null; then
    zstd --quiet --decompress --stdout "$1"
  else
    python3 -c 'import sys, zstandard
zstandard.ZstdDecompressor().copy_stream(open(sys.argv[1], "rb"), sys.stdout.buffer)' "$1"
  fi
}

# Takes the number of a file as its address has it, and the name of its data set.
prepare() {
  local packed=$2.jsonl.zst text=$2.jsonl part=$2.part suffix
  if [[ -s $2_text_document.bin && -s $2_text_document.idx ]]; then
    rm -f "$packed" "$text"  # an attempt may have ended before it removed them
    log "$2 already exists"
    return
  fi
  # Others may write to this storage: no link or pipe of theirs is written to.
  rm -f "$text.part" "$part"_text_document.{bin,idx}
  [[ -f $packed.part && ! -L $packed.part ]] || rm -f "$packed.part"
  if [[ ! -s $text ]]; then
    if [[ ! -s $packed ]]; then
      log "fetching $DATA_SOURCE$1.jsonl.zst"
      fetch "$DATA_SOURCE$1.jsonl.zst" "$packed.part"
      mv --no-target-directory "$packed.part" "$packed"
    fi
    log "unpacking $packed"
    unpack "$packed" >"$text.part"
    mv --no-target-directory "$text.part" "$text"
  fi
  log "tokenizing $text"
  python3 -u "${tool[@]}" --input "$text" --output-prefix "$part" --workers "$processes"
  for suffix in _text_document.bin _text_document.idx; do
    [[ -s $part$suffix ]] || { log "the tool wrote no $2$suffix" >&2 && exit 1; }
    mv --no-target-directory "$part$suffix" "$2$suffix"
  done
  rm -f "$packed" "$text"
  log "wrote $2"
}

tool=("$@")
processes=$(($(nproc) / WORKERS))
if ((processes < 1)); then processes=1; fi
mapfile -t names <<<"$DATA_NAMES"
mkdir -p "${names[0]%/*}"
for ((number = RANK; number < ${#names[@]}; number += WORLD_SIZE)); do
  prepare "$(printf '%02d' "$number")" "${names[number]}"
done
