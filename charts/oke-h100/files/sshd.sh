trap - EXIT
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
# The run's own key, which the controller puts into each of its pods: by it the master knows its machines.
install -m 600 /root/.ssh/id_rsa /run/chartgen/host-key
# Not as the image configures it: only root gets in, and only with the key that was made for this run.
"$server" -D -e -f /dev/null -h /run/chartgen/host-key -p SSH_PORT \
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
