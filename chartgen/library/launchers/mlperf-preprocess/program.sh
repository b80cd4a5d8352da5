#!/usr/bin/env bash
# Arguments: the data set's directory, and the folder of the benchmark's own download_dataset.py, which converts it.
set -euo pipefail
directory=$1
export PYTHONPATH=$2
# The converter reads and writes below one folder; in a folder of its own, no half-written file has a final name.
# It is new each time: others may write to this storage, and no link of theirs is written to.
work=$directory/.preprocess
rm -rf "$work"
mkdir -p "$work"
ln -sfn "$directory/data" "$work/data"
for split in train validation; do
  if [[ -s $directory/$split.npy ]]; then
    echo "chartgen: $directory/$split.npy already exists"
    continue
  fi
  if [[ ! -s $directory/data/$split-00000-of-00001.parquet ]]; then
    echo "chartgen: $directory/data has no $split split; run the launcher download first" >&2
    exit 1
  fi
  python3 -c 'import sys; from download_dataset import DatasetProcessor; DatasetProcessor(sys.argv[1]).convert_split(sys.argv[2])' \
    "$work" "$split"
  if [[ ! -s $work/$split.npy ]]; then
    echo "chartgen: the converter wrote no $split.npy" >&2
    exit 1
  fi
  mv --no-target-directory "$work/$split.npy" "$directory/$split.npy"
  echo "chartgen: wrote $directory/$split.npy"
done
rm -r "$work"
