# GPUDirect-TCPXO: the plugin's NCCL must be found before the one in the image; ldconfig covers what ignores the path.
plugin=/usr/local/nccl-plugin/lib64
source_profile "$plugin/nccl-env-profile.sh"
export LD_LIBRARY_PATH="$plugin:/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
ldconfig "$plugin" /usr/local/nvidia/lib64
