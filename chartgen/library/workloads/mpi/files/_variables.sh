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
