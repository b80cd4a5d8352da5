# KubeRay's command is `ray start`, with its options and the address of the head. Ray's processes get the environment of
# this script.
: "${KUBERAY_GEN_RAY_START_CMD:?is the command that KubeRay writes}"
ulimit -n 65536 || true
exec bash -c "$KUBERAY_GEN_RAY_START_CMD"
