{{/* What is TCPXO's own: how plugin and daemon start, and which daemons go with which plugin. */}}
{{- define "<%= chart %>.gpudirect" -}}
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
<% for row in compat().plugins["gpudirect-tcpxo"] if "unfit" not in row %>
  <%= row.plugin %>: [<%= row.daemons | join(", ") %>]
<% endfor %>
{{- end }}
