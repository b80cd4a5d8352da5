{{- if include "<%= chart %>.efaAdapters" . | int64 }}
# EFA: NCCL uses it through the plugin of aws-ofi-nccl, which images keep in different places. It must be found before
# other plugins of the image; where it is not found at all, NCCL would use TCP without a word.
folders=(/opt/amazon/ofi-nccl/lib{/x86_64-linux-gnu,/aarch64-linux-gnu,} /opt/amazon/aws-ofi-nccl/lib /opt/aws-ofi-nccl{/install,}/lib)
if [[ -n ${EFA_PLUGIN-} ]]; then folders=("$EFA_PLUGIN"); fi
plugin=
for folder in "${folders[@]}"; do
  if [[ -e $folder/libnccl-net.so || -e $folder/libnccl-net-ofi.so ]]; then plugin=$folder && break; fi
done
[[ -n $plugin ]] || refuse "no EFA plugin for NCCL (aws-ofi-nccl) in ${folders[*]}; use an image with one, or set network.plugin"
export LD_LIBRARY_PATH="$plugin:/opt/amazon/efa/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# NVIDIA's images preset another plugin from NeMo 26.08 on. A name is found by every NCCL; a path only by 2.21 and newer, as
# all images have that preset one.
if [[ " ${release_variables[*]} " != *" NCCL_NET_PLUGIN "* ]]; then
  if [[ -e $plugin/libnccl-net-ofi.so ]]; then
    export NCCL_NET_PLUGIN=ofi
  elif [[ -n ${NCCL_NET_PLUGIN-} ]]; then
    export NCCL_NET_PLUGIN=$plugin/libnccl-net.so
  fi
fi
{{- end }}
