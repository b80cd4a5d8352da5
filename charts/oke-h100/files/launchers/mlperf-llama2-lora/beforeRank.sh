# The benchmark reads its ranks from Slurm's variables. SLURM_NTASKS would make Lightning believe in Slurm itself.
export SLURM_LOCALID=$LOCAL_RANK SLURM_PROCID=$RANK SLURM_NODEID=$NODE_RANK
unset SLURM_NTASKS
