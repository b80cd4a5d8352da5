"${launch[@]}" /etc/chartgen/rank.sh &
processes=$!

# mpirun would kill the programs within a second. So SIGTERM goes to the start scripts, which let them save. A run that
# was stopped is not completed, whatever its programs report.
stopped=0
# shellcheck disable=SC2329
stop() {
  local host
  stopped=143
  for host in "${hosts[@]}"; do
    # shellcheck disable=SC2016
    ssh "${options[@]}" "$host" 'kill "$(cat /run/chartgen/pid)"' </dev/null &
  done
}
trap stop TERM
# A trap interrupts wait; the exit code that counts is that of mpirun.
code=0
wait "$processes" || code=$?
while kill -0 "$processes" 2>/dev/null; do
  code=0
  wait "$processes" || code=$?
done
exit "$((code ? code : stopped))"
