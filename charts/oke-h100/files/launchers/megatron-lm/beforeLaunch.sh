# Rank 0 builds Megatron-LM's index helpers, on its own machine only; every machine needs them.
helpers=${1%/*}/megatron/core/datasets
if [[ -f $helpers/Makefile ]]; then make -C "$helpers"; fi
