{{/* Properties of each version of the plugin, as YAML; data/compat.yaml has the sources. */}}
{{- define "gke-a3mega.gpudirectVersions" -}}
v1.0.1: {daemons: ["v1.0.8"], daemonFlags: ["--num_hops=2", "--num_nics=8", "--uid=", "--alsologtostderr"], build: "221",
  settings: {NCCL_ALGO: "Ring,Tree", NCCL_NVLS_ENABLE: "0", NCCL_DYNAMIC_CHUNK_SIZE: "524288"}}
v1.0.2: {daemons: ["v1.0.8"], daemonFlags: ["--num_hops=2", "--num_nics=8", "--uid=", "--alsologtostderr"], build: "221",
  settings: {NCCL_ALGO: "Ring,Tree", NCCL_NVLS_ENABLE: "0", NCCL_DYNAMIC_CHUNK_SIZE: "524288"}}
v1.0.3: {daemons: ["v1.0.9"], daemonFlags: ["--num_hops=2", "--num_nics=8", "--uid=", "--alsologtostderr"], build: "221",
  settings: {NCCL_ALGO: "Ring,Tree", NCCL_NVLS_ENABLE: "0", NCCL_DYNAMIC_CHUNK_SIZE: "524288"}}
v1.0.4: {daemons: ["v1.0.10"], daemonFlags: ["--num_hops=2", "--num_nics=8", "--uid=", "--alsologtostderr"], build: "221",
  settings: {NCCL_ALGO: "Ring,Tree", NCCL_NVLS_ENABLE: "0", NCCL_DYNAMIC_CHUNK_SIZE: "524288"}}
v1.0.5: {daemons: ["v1.0.11"], daemonFlags: ["--num_hops=2", "--num_nics=8", "--uid=", "--alsologtostderr"], build: "221", probe: true,
  settings: {NCCL_ALGO: "Ring,Tree", NCCL_NVLS_ENABLE: "0", NCCL_DYNAMIC_CHUNK_SIZE: "524288"}}
v1.0.6: {daemons: ["v1.0.12"], daemonFlags: ["--num_hops=2", "--num_nics=8", "--uid=", "--alsologtostderr"], build: "221", probe: true,
  settings: {NCCL_ALGO: "Ring,Tree", NCCL_NVLS_ENABLE: "0", NCCL_DYNAMIC_CHUNK_SIZE: "524288"}}
v1.0.7: {daemons: ["v1.0.13", "v1.0.13_1"], daemonFlags: ["--num_hops=2", "--num_nics=8", "--uid=", "--alsologtostderr"], build: "222", probe: true,
  settings: {NCCL_ALGO: "Ring,Tree", NCCL_NVLS_ENABLE: "0", NCCL_DYNAMIC_CHUNK_SIZE: "524288"}}
v1.0.8-1: {daemons: ["v1.0.14"], daemonFlags: ["--num_hops=2", "--num_nics=8", "--uid=", "--alsologtostderr"], build: "223", probe: true,
  settings: {NCCL_ALGO: "Ring,Tree", NCCL_NVLS_ENABLE: "0", NCCL_DYNAMIC_CHUNK_SIZE: "524288"}}
v1.0.9-1: {daemons: ["v1.0.15"], daemonFlags: ["--num_hops=2", "--num_nics=8", "--uid=", "--alsologtostderr"], build: "223", probe: true,
  settings: {NCCL_ALGO: "Ring,Tree", NCCL_NVLS_ENABLE: "0", NCCL_DYNAMIC_CHUNK_SIZE: "524288"}}
v1.0.11: {daemons: ["v1.0.17"], daemonFlags: ["--num_hops=2", "--num_nics=8", "--uid=", "--alsologtostderr"], build: "223", probe: true,
  settings: {NCCL_ALGO: "Ring,Tree", NCCL_NVLS_ENABLE: "0", NCCL_DYNAMIC_CHUNK_SIZE: "524288"}}
v1.0.12: {daemons: ["v1.0.18"], daemonFlags: ["--num_hops=2", "--num_nics=8"], probe: true,
  settings: {NCCL_NVLSTREE_MAX_CHUNKSIZE: "131072", NCCL_DYNAMIC_CHUNK_SIZE: "524288"}}
v1.0.14: {daemons: ["v1.0.20"], daemonFlags: ["--num_hops=2"], probe: true,
  settings: {NCCL_NVLSTREE_MAX_CHUNKSIZE: "131072", NCCL_NVLS_ENABLE: "1"}}
v1.0.15: {daemons: ["v1.0.21"], daemonFlags: ["--num_hops=2"], probe: true,
  settings: {NCCL_NVLSTREE_MAX_CHUNKSIZE: "131072", NCCL_NVLS_ENABLE: "1"}}
v1.0.16: {daemons: ["v1.0.22"], daemonFlags: ["--num_hops=2"], probe: true,
  settings: {NCCL_NVLSTREE_MAX_CHUNKSIZE: "131072", NCCL_NVLS_ENABLE: "1", NCCL_NET_PLUGIN_TELEMETRY_MODE: "0"}}
v1.0.17: {daemons: ["v1.0.23"], daemonFlags: ["--num_hops=2"], probe: true,
  settings: {NCCL_NVLSTREE_MAX_CHUNKSIZE: "131072", NCCL_NVLS_ENABLE: "1", NCCL_NET_PLUGIN_TELEMETRY_MODE: "0"}}
{{- end }}

{{/* Interfaces of a pod outside the host network, as JSON: eth0 for all else, eth1 and on for the GPUs. */}}
{{- define "gke-a3mega.gpudirectInterfaces" -}}
{{- $interfaces := list (dict "interfaceName" "eth0" "network" "default") }}
{{- range $i, $network := .Values.network.subnetworks }}
{{- $interfaces = append $interfaces (dict "interfaceName" (printf "eth%d" (add1 $i)) "network" $network) }}
{{- end }}
{{- toJson $interfaces }}
{{- end }}

{{/* Devices that the daemon opens, as YAML. Takes the names of those that only one transport has. */}}
{{- define "gke-a3mega.gpudirectDevices" -}}
{{- $devices := list }}
{{- range $gpu := until 8 }}{{ $devices = append $devices (printf "nvidia%d" $gpu) }}{{ end }}
{{- range concat $devices (list "nvidiactl" "nvidia-uvm") . }}
- path: /dev/{{ . }}
{{- end }}
{{- end }}

{{/*
Script of the daemon's container; its arguments are the daemon's command. As process 1 of its container the daemon would
not feel SIGTERM, and keep the pod for its whole grace period: bash passes the signal on and ends what does not end.
*/}}
{{- define "gke-a3mega.gpudirectWatch" -}}
daemon=
stop() {
  kill -TERM "$daemon" || exit 0
  for ((tenth = 0; tenth < 50; tenth++)); do
    kill -0 "$daemon" || exit 0
    sleep 0.1
  done
  kill -KILL "$daemon"
  exit 0
} 2>/dev/null
trap stop TERM
"$@" &
daemon=$!
wait "$daemon"
{{- end }}
