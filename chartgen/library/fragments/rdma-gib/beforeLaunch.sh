# gIB: its libraries must be found before those of the image, and what an image has in CUDA's compat folder before the machine's
# driver, as Google's launchers order them. Google changes gIB's settings from version to version.
export LD_LIBRARY_PATH="/usr/local/cuda/compat/lib:/usr/local/gib/lib64:/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
{{- if include "<%= chart %>.gibInImage" . }}
[[ -d /usr/local/gib/lib64 ]] ||
  refuse 'no /usr/local/gib/lib64; on this machine type the image contains gIB (nccl-gib-plugins) and DOCA-OFED'
# Google's recipes for this machine type go without the script; whether each version has it is not documented.
if [[ -r /usr/local/gib/scripts/set_nccl_env.sh ]]; then source_profile /usr/local/gib/scripts/set_nccl_env.sh; fi
{{- else }}
source_profile /usr/local/gib/scripts/set_nccl_env.sh
{{- end }}
