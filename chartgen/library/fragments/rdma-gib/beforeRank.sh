# Half of the machine's GPUs are at each of its two NUMA nodes. Memory comes from the node of the CPUs by default: numactl, which
# Google's privileged recipes use, needs SYS_NICE under the runtime's seccomp profile.
node=/sys/devices/system/node/node$((LOCAL_RANK / {{ div .Run.machine.gpus 2 }}))
if ! { taskset -cp "$(cat "$node/cpulist")" "$$"; } &>/dev/null && mkdir "${CHARTGEN_PROCESSES:-/run/chartgen/ranks}.unbound" 2>/dev/null; then
  echo "chartgen: the processes are not bound to NUMA nodes: no $node/cpulist that taskset can use" >&2
fi
