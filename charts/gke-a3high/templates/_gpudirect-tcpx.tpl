{{/* What is TCPX's own: how plugin and daemon start. */}}
{{- define "gke-a3high.gpudirect" -}}
# The second name is one that every version of NCCL finds by NCCL_NET_PLUGIN.
install: |
  bash /scripts/container_entry.sh "$@"
  ln -sf libnccl-net.so /var/lib/tcpx/lib64/libnccl-net-tcpx.so
installArguments: [install{{ if eq (include "gke-a3high.tcpxNccl" .) "plugin" }}, --install-nccl{{ end }}]
installed: /var/lib/tcpx
daemon: tcpx-daemon
daemonCommand:
  - /tcpgpudmarxd/build/app/tcpgpudmarxd
  - --gpu_nic_preset
  - a3vm
  - --gpu_shmem_type
  - fd
  - --uds_path
  - /run/tcpx
  - --setup_param
  - --verbose 128 2 0
capabilities: [NET_ADMIN]
daemonMounts:
  - {name: tcpx-socket, mountPath: /run/tcpx}
{{- end }}

{{/* Whose NCCL the program loads: with images before 2024 the plugin's, with later ones their own, which is newer. */}}
{{- define "gke-a3high.tcpxNccl" -}}
{{- $image := .Run.launcher.image | toString }}
{{- $year := regexFind ":[0-9][0-9][.][0-9][0-9]" $image | trimPrefix ":" | trunc 2 | default "99" }}
{{- .Values.network.nccl | default (lt (int $year) 24 | ternary "plugin" "image") }}
{{- end }}
