# After a failure the processes of all machines start again, as often as the run may; not after a final exit code
# (templates/_helpers.tpl). Each attempt is this script once more.
if [[ -z ${MPI_ATTEMPT-} ]]; then
  stopped=
  for ((MPI_ATTEMPT = 0; ; MPI_ATTEMPT++)); do
    export MPI_ATTEMPT
    bash "$0" &
    attempt=$!
    trap 'stopped=yes; kill -TERM "$attempt"' TERM
    # A trap interrupts wait; the exit code that counts is that of the attempt.
    while kill -0 "$attempt" 2>/dev/null; do wait "$attempt" || true; done
    code=0
    wait "$attempt" || code=$?
    if [[ -n $stopped || " 0 <%= final_exits | join(" ") %> " == *" $code "* ]] || ((MPI_ATTEMPT == MPI_RESTARTS)); then exit "$code"; fi
    echo "chartgen: exit code $code; the machines start again, $((MPI_ATTEMPT + 1)) of at most $MPI_RESTARTS times" >&2
  done
fi

# The operator's host file names each worker and its slots.
mapfile -t hosts < <(cut -d ' ' -f 1 /etc/mpi/hostfile)
# Open MPI would take it beside the one below.
unset OMPI_MCA_orte_default_hostfile OMPI_MCA_orte_set_default_slots
