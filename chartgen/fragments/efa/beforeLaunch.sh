{{- if include "<%= chart %>.efaAdapters" . | int64 }}
# EFA: NCCL uses it through the plugin of aws-ofi-nccl, which images keep in different places. It must be found before
# other plugins of the image; where it is not found at all, NCCL would use TCP without a word.
folders=(/opt/amazon/ofi-nccl/lib{/x86_64-linux-gnu,} /opt/amazon/aws-ofi-nccl/lib /opt/aws-ofi-nccl{/install,}/lib)
if [[ -n ${EFA_PLUGIN-} ]]; then folders=("$EFA_PLUGIN"); fi
plugin=
for folder in "${folders[@]}"; do
  if [[ -e $folder/libnccl-net.so || -e $folder/libnccl-net-ofi.so ]]; then plugin=$folder && break; fi
done
if [[ -z $plugin ]]; then
  echo "chartgen: no EFA plugin for NCCL (aws-ofi-nccl) in ${folders[*]}; use an image with one, or set network.plugin" >&2
  exit 1
fi
export LD_LIBRARY_PATH="$plugin:/opt/amazon/efa/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# Newer ones have only a name of their own.
if [[ ! -e $plugin/libnccl-net.so ]]; then export NCCL_NET_PLUGIN=ofi; fi
{{- end }}
