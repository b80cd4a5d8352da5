#!/usr/bin/env bash
# Arguments: the data set's name with its directory, the tool, the tool's arguments.
set -euo pipefail
name=$1 tool=$2
shift 2
result=${name}_text_document
if [[ -s $result.bin && -s $result.idx ]]; then
  echo "chartgen: $result already exists"
  exit
fi
# Others may write to this storage: no link or pipe of theirs is written to.
rm -f "$name".part_text_document.{bin,idx}
python3 -u "$tool" "$@" --output-prefix "$name.part"
# The tool ends well also when its workers have failed, so what it wrote decides; the index comes last.
for kind in bin idx; do
  if [[ ! -s ${name}.part_text_document.$kind ]]; then
    echo "chartgen: $tool wrote no $result.$kind" >&2
    exit 1
  fi
done
for kind in bin idx; do mv --no-target-directory "$name.part_text_document.$kind" "$result.$kind"; done
echo "chartgen: wrote $result"
