{{/* What is TCPXO's own: how plugin and daemon start. */}}
{{- define "gke-a3mega.gpudirect" -}}
{{- $version := get (include "gke-a3mega.gpudirectVersions" . | fromYaml) .Values.network.pluginVersion | default dict -}}
install: |
  bash /scripts/container_entry.sh "$@"
  cp -r /var/lib/tcpxo/* /usr/local/nccl-plugin/
installArguments: [install, --install-nccl{{ with .Values.network.ncclBuildType | default $version.build }}, --nccl-buildtype={{ . }}{{ end }}]
installed: /usr/local/nccl-plugin
daemon: tcpxo-daemon
daemonCommand:
  - bash
  - /fts/entrypoint_rxdm_container.sh
  {{- range $version.daemonFlags }}
  - {{ . }}
  {{- end }}
{{- if $version.probe }}
# without a low line, which the daemon does not take
probe: /run/health-check
{{- end }}
capabilities: [NET_ADMIN, NET_BIND_SERVICE]
devices: [dmabuf_import_helper]
{{- end }}
