#!/usr/bin/env bash
# Waits for the machines, sorts them, and starts the processes of the run on them with mpirun.
set -euo pipefail
trap 'exit 143' TERM

IFS=, read -ra hosts <<<"${VC_MPIWORKER_HOSTS:?not set by the svc plugin of Volcano}"
mkdir -p /run/chartgen/places
# Only the machines of the run have its key.
echo "* $(</root/.ssh/id_rsa.pub)" >/run/chartgen/known-hosts
options=(
  -p "$MPI_SSH_PORT" -o BatchMode=yes -o ConnectTimeout=5 -o LogLevel=ERROR
  -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/run/chartgen/known-hosts -o GlobalKnownHostsFile=/dev/null
)

# A machine answers when its start script is done; the answer is its place in the network.
waiting=("${hosts[@]}")
report=0
while true; do
  declare -A probes=()
  for host in "${waiting[@]}"; do
    ssh "${options[@]}" "$host" cat /run/chartgen/place >"/run/chartgen/places/$host" 2>/dev/null </dev/null &
    probes[$host]=$!
  done
  silent=()
  for host in "${waiting[@]}"; do wait "${probes[$host]}" || silent+=("$host"); done
  waiting=("${silent[@]}")
  if ((${#waiting[@]} == 0)); then break; fi
  if ((SECONDS >= MPI_WAIT_SECONDS)); then
    echo "chartgen: after $SECONDS s no ssh server of this run answers on ${waiting[*]}; see the logs of these pods" >&2
    exit 1
  fi
  if ((report <= SECONDS)); then
    echo "chartgen: waiting for ${#waiting[@]} of ${#hosts[@]} machines, such as ${waiting[0]}"
    report=$((SECONDS + 30))
  fi
  sleep 2
done
echo "chartgen: all ${#hosts[@]} machines answer"

# Neighbours in the list get neighbouring ranks. A stable sort keeps their order where places are equal.
if [[ $MPI_SORT_HOSTS == true ]]; then
  lost=()
  for host in "${hosts[@]}"; do [[ -s /run/chartgen/places/$host ]] || lost+=("$host"); done
  if ((${#lost[@]} == 0)); then
    mapfile -t hosts < <(
      for host in "${hosts[@]}"; do printf '%s\t%s\n' "$(</run/chartgen/places/"$host")" "$host"; done |
        LC_ALL=C sort -s -t $'\t' -k 1,1 | cut -f 2
    )
  else
    echo "chartgen: the network position of ${#lost[@]} of ${#hosts[@]} machines is not known," \
      "such as ${lost[0]}; ranks follow the pods' numbers"
  fi
fi
for index in "${!hosts[@]}"; do
  echo "chartgen: ranks from $((index * GPUS_PER_NODE)) on ${hosts[index]} $(</run/chartgen/places/"${hosts[index]}")"
done
printf "%s slots=$GPUS_PER_NODE\n" "${hosts[@]}" >/run/chartgen/hosts
export MASTER_ADDR=${hosts[0]}

# Open MPI 4 reads the first line, 5 the second. The master reaches each machine itself, not some of them through
# others, and by its whole name, which DNS knows.
export OMPI_MCA_plm_rsh_args="${options[*]}" OMPI_MCA_plm_rsh_no_tree_spawn=1 OMPI_MCA_orte_keep_fqdn_hostnames=1
export PRTE_MCA_plm_ssh_args="${options[*]}" PRTE_MCA_plm_ssh_no_tree_spawn=1 PRTE_MCA_prte_keep_fqdn_hostnames=1
# With its full path, mpirun finds its own parts on the machines too.
launch=(
  "$(command -v mpirun)" --allow-run-as-root -np "$((NNODES * GPUS_PER_NODE))" --hostfile /run/chartgen/hosts
  --map-by "ppr:$GPUS_PER_NODE:node" --bind-to "$MPI_BIND_TO" -x MASTER_ADDR ${MPI_ATTEMPT:+-x MPI_ATTEMPT} bash
)
