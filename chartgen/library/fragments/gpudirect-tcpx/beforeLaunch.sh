# GPUDirect-TCPX: without its plugin NCCL would fall back to TCP, many times slower, without a word.
plugin=/usr/local/tcpx/lib64
[[ -e $plugin/libnccl-net-tcpx.so ]] || refuse "no libnccl-net-tcpx.so in $plugin: the plugin was not installed"
{{- if eq (include "<%= chart %>.tcpxNccl" .) "plugin" }}
# The plugin's NCCL must be found before the one in the image.
export LD_LIBRARY_PATH="$plugin:/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
{{- else }}
# The image's NCCL must be found before an older one beside the plugin.
export LD_LIBRARY_PATH="/usr/local/cuda/lib64:/lib/x86_64-linux-gnu:$plugin:/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
{{- end }}
