mkdir -p "$RUN_DIRECTORY/data_index/train" "$RUN_DIRECTORY/data_index/val"

# Runs this script once more as a trial with a seed and a meeting port of its own, and keeps what it prints.
run_trial() {
  local trial=$1 result=$2 folder status=0
  shift 2
  folder=$(mktemp -d)
  mkfifo "$folder/output"
  tee "$result" <"$folder/output" &
  TRIAL_NUMBER=$trial SEED=$((FIRST_SEED + trial)) MASTER_PORT=$((MASTER_PORT + trial)) \
    bash "$0" "$@" >"$folder/output" 2>&1 &
  trial_process=$!
  trap 'kill -TERM "$trial_process"' TERM
  wait "$trial_process" || status=$?
  # A signal ends the first wait, not the trial.
  if kill -0 "$trial_process" 2>/dev/null; then
    status=0
    wait "$trial_process" || status=$?
  fi
  wait
  rm -r "$folder"
  return "$status"
}

# Checks a trial's log against the rules of MLPerf; only the machine of rank 0 has it.
complies() {
  if [[ $NODE_RANK != 0 || -z $RULESET ]]; then return; fi
  python3 -m mlperf_logging.compliance_checker --usage training --ruleset "$RULESET" \
    --log_output "$RUN_DIRECTORY/compliance_$1.out" "$RUN_DIRECTORY/result_$1.txt"
}

if [[ -z ${TRIAL_NUMBER-} ]]; then
  trap - EXIT
  violations=0
  for ((trial = 0; trial < TRIALS; trial++)); do
    # MLPerf's own name of the log.
    result=$RUN_DIRECTORY/result_$trial.txt
    if ((NODE_RANK)); then result=$RUN_DIRECTORY/trial_$trial.node_$NODE_RANK.txt; fi
    rm -f "$result" "$RUN_DIRECTORY/compliance_$trial.out" # a link or a pipe of another user
    status=0
    run_trial "$trial" "$result" "$@" || status=$?
    if ((status)); then
      echo "chartgen: trial $((trial + 1)) of $TRIALS failed with exit code $status" >&2
      exit "$status"
    fi
    complies "$trial" || violations=$((violations + 1))
  done
  if ((violations)); then
    echo "chartgen: $violations of $TRIALS trials do not comply; see $RUN_DIRECTORY/compliance_*.out" >&2
    exit 1
  fi
  exit
fi
