# GPUDirect-TCPXO: the plugin's NCCL must be found before the one in the image; ldconfig covers what ignores the path.
source_profile "$NCCL_LIB_DIR/nccl-env-profile.sh"
export LD_LIBRARY_PATH="$NCCL_LIB_DIR:/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
ldconfig "$NCCL_LIB_DIR" /usr/local/nvidia/lib64
