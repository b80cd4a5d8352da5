{{/*
The end of a machine's start script: a ssh server, through which mpirun starts the processes later. What they need,
variables and arguments, waits in a file that only root reads.
*/}}
{{- define "<%= chart %>.launch" }}
arguments=("$@")
(
  umask 077
  mkdir -p /run/chartgen/ranks
  { declare -px && declare -p arguments; } >/run/chartgen/launch
)
echo "$$" >/run/chartgen/pid
# Where this machine is in the network; stays empty unless something above has found it out.
touch /run/chartgen/place

mkdir -p /run/sshd
PATH="$PATH:/usr/sbin"
if ! server=$(command -v sshd); then
  echo 'chartgen: this image has no sshd, through which mpirun starts processes; use one with openssh-server' >&2
  exit 1
fi
ssh-keygen -q -t ed25519 -N '' -f /run/chartgen/host-key </dev/null
# Not as the image configures it: only root gets in, and only with the key that Volcano has made for this run.
"$server" -D -e -f /dev/null -h /run/chartgen/host-key -p {{ .Values.mpi.sshPort | int64 }} \
  -o LogLevel=ERROR -o PidFile=none -o StrictModes=no -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no &
server=$!

# Kubernetes' SIGTERM goes to the programs, which save and end. The server stays until their parent, mpirun's daemon,
# has gone too: without it mpirun would kill the programs of the other machines.
stop() {
  local file pid daemon=
  for file in /run/chartgen/ranks/*; do
    [[ -e $file ]] || continue
    read -r pid daemon <"$file"
    kill -TERM "$pid" 2>/dev/null || true
  done
  while [[ -n $daemon ]] && kill -0 "$daemon" 2>/dev/null; do sleep 1; done
  kill "$server"
}
trap stop TERM
wait "$server"
{{- end }}

{{/* What a process knows of itself comes from Open MPI, all else from the start script of its machine. */}}
{{- define "<%= chart %>.rankVariables" }}
meeting=$MASTER_ADDR
# shellcheck disable=SC1091
source /run/chartgen/launch
cd "$PWD"
export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE
export LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK LOCAL_WORLD_SIZE=$OMPI_COMM_WORLD_LOCAL_SIZE
export GROUP_RANK=$((RANK / LOCAL_WORLD_SIZE)) GROUP_WORLD_SIZE=$NNODES
export NODE_RANK=$GROUP_RANK MASTER_ADDR=$meeting
# By this name Lightning knows that the variables above count. Otherwise it asks MPI, and the ranks would meet at the
# host name of a machine, which no DNS knows, and at a random port.
export TORCHELASTIC_RUN_ID=$RUN_DIRECTORY
{{- end }}

{{/* For the start script, which hands on SIGTERM and waits for the parent; and the profiler. */}}
{{- define "<%= chart %>.rankProcess" }}
# Under a profiler the profiler's number stays.
# shellcheck disable=SC2154
set -- "${arguments[@]}"
process=/run/chartgen/ranks/$LOCAL_RANK
[[ -e $process ]] || echo "$$ $PPID" >"$process"
{{- if .Values.profile.enabled }}
# Nsight Systems runs around a profiled process, as which this script starts once more, and ends with its capture range.
if [[ " {{ join " " .Values.profile.ranks }} " == *" $RANK "* && -z ${PROFILED-} ]]; then
  export PROFILED=yes
  exec nsys profile -s none -t "nvtx,cuda" --capture-range=cudaProfilerApi --capture-range-end=stop \
    --force-overwrite=true -o "$RUN_DIRECTORY/rank-$RANK" bash /etc/chartgen/rank.sh
fi
{{- end }}
{{- end }}

{{/* Script of every process of the communicator that is made before the program starts. */}}
{{- define "<%= chart %>.transportRank" }}
#!/usr/bin/env bash
# Does NCCL use the network that the chart promises? The first process of each machine tells.
set -euo pipefail
{{- include "<%= chart %>.rankVariables" . }}
{{ include "<%= chart %>.transportLog" . }}
mkdir -p "${said%/*}"
if ((LOCAL_RANK == 0)); then rm -f "$said"; fi
code=0
python3 -u /etc/chartgen/transport.py meet "$said" || code=$?
if ((LOCAL_RANK == 0)); then python3 /etc/chartgen/transport.py compare "$said" "$code"; fi
{{- end }}
