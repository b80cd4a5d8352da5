{{/* Properties of each version of the plugin, as YAML; data/compat.yaml has the sources. */}}
{{- define "gke-a3high.gpudirectVersions" -}}
v3.1.6_2023_10_06: {daemons: ["v2.0.9"],
  settings: {NCCL_ALGO: "Ring", NCCL_CHECK_POINTERS: "0", NCCL_MIN_NCHANNELS: "8", NCCL_MAX_NCHANNELS: "8",
    NCCL_GPUDIRECTTCPX_PROGRAM_FLOW_STEERING_WAIT_MICROS: "1000000", NCCL_GPUDIRECTTCPX_FORCE_ACK: "0",
    NCCL_GPUDIRECTTCPX_TX_COMPLETION_NANOSLEEP: "1000"}}
v3.1.7: {daemons: ["v2.0.9"],
  settings: {NCCL_ALGO: "Ring", NCCL_CHECK_POINTERS: "0", NCCL_MIN_NCHANNELS: "8", NCCL_MAX_NCHANNELS: "8",
    NCCL_GPUDIRECTTCPX_PROGRAM_FLOW_STEERING_WAIT_MICROS: "1000000", NCCL_GPUDIRECTTCPX_FORCE_ACK: "0",
    NCCL_GPUDIRECTTCPX_TX_COMPLETION_NANOSLEEP: "1000"}}
v3.1.9: {daemons: ["v2.0.9", "v2.0.12"],
  settings: {NCCL_ALGO: "Ring", NCCL_BUFFSIZE: "4194304", NCCL_GPUDIRECTTCPX_PROGRAM_FLOW_STEERING_WAIT_MICROS: "500000"}}
v3.1.12: {daemons: ["v2.0.15"],
  settings: {NCCL_ALGO: "Ring,Tree", NCCL_BUFFSIZE: "4194304", NCCL_GPUDIRECTTCPX_PROGRAM_FLOW_STEERING_WAIT_MICROS: "500000"}}
{{- end }}

{{/* Interfaces of a pod outside the host network, as JSON: eth0 for all else, eth1 and on for the GPUs. */}}
{{- define "gke-a3high.gpudirectInterfaces" -}}
{{- $interfaces := list (dict "interfaceName" "eth0" "network" "default") }}
{{- range $i, $network := .Values.network.subnetworks }}
{{- $interfaces = append $interfaces (dict "interfaceName" (printf "eth%d" (add1 $i)) "network" $network) }}
{{- end }}
{{- toJson $interfaces }}
{{- end }}

{{/* Devices that the daemon opens, as YAML. Takes the names of those that only one transport has. */}}
{{- define "gke-a3high.gpudirectDevices" -}}
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
{{- define "gke-a3high.gpudirectWatch" -}}
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
