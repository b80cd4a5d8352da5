{{/* What is TCPXO's own: how plugin and daemon start, and which daemons go with which plugin. */}}
{{- define "gke-a3mega.gpudirect" -}}
install: |
  bash /scripts/container_entry.sh "$@"
  cp -r /var/lib/tcpxo/* /usr/local/nccl-plugin/
installArguments: [install, --install-nccl, --nccl-buildtype={{ .Values.network.ncclBuildType }}]
installed: /usr/local/nccl-plugin
daemon: tcpxo-daemon
daemonCommand:
  - bash
  - /fts/entrypoint_rxdm_container.sh
  - --num_hops=2
  - --num_nics=8
  - --uid=
  - --alsologtostderr
capabilities: [NET_ADMIN, NET_BIND_SERVICE]
devices: [dmabuf_import_helper]
# From v1.0.12 on, NCCL wants other settings than this fragment's.
daemons:
  v1.0.1: [v1.0.8]
  v1.0.2: [v1.0.8]
  v1.0.3: [v1.0.9]
  v1.0.4: [v1.0.10]
  v1.0.5: [v1.0.11]
  v1.0.6: [v1.0.12]
  v1.0.7: [v1.0.13, v1.0.13_1]
  v1.0.8-1: [v1.0.14]
  v1.0.9-1: [v1.0.15]
  v1.0.11: [v1.0.17]
{{- end }}
