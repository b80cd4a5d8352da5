{{/* What the vendor measured for each kind of machine: NCCL's settings, and variables of what uses MPI beside it. */}}
{{- define "oke-h100.roceSettings" -}}
roce: &roce
  NCCL_IB_GID_INDEX: "3"
  NCCL_IB_SL: "0"
  NCCL_IB_SPLIT_DATA_ON_QPS: "0"
  NCCL_IB_TC: "41"
  NCCL_IB_TIMEOUT: "22"
nvlink: &nvlink {NCCL_CUMEM_ENABLE: "1", NCCL_MNNVL_ENABLE: "1"}
socket: &socket {NCCL_SOCKET_IFNAME: {{ .Values.network.interface | toJson }}}
nccl:
  ampere: {<<: *roce, NCCL_IB_QPS_PER_CONNECTION: "4"}
  hopper: &hopper {<<: [*roce, *socket], NCCL_CUMEM_ENABLE: "0", NCCL_IGNORE_CPU_AFFINITY: "1"}
  rtxpro:
    <<: *hopper
    NCCL_ALGO: Tree
    NCCL_IB_QPS_PER_CONNECTION: "1"
    NCCL_MIN_NCHANNELS: "8"
    NCCL_NET_PLUGIN: none
  gb200: {<<: [*nvlink, *socket], NCCL_NET_PLUGIN: sys, NCCL_NVLS_ENABLE: "1"}
  gb200-v3:
    <<: [*roce, *nvlink]
    NCCL_IB_QPS_PER_CONNECTION: "1"
    NCCL_NET_GDR_C2C: "1"
    NCCL_NET_PLUGIN: none
  gb300:
    <<: [*roce, *nvlink, *socket]
    NCCL_BUFFSIZE: "16777216"
    NCCL_DMABUF_ENABLE: "1"
    NCCL_IB_QPS_PER_CONNECTION: "4"
    NCCL_NET_GDR_C2C: "1"
    NCCL_NET_PLUGIN: none
    NCCL_NVLS_ENABLE: "1"
# MPI's own traffic is small: over TCP, without HCOLL, which would take the adapters.
mpi: &mpi {OMPI_MCA_coll: "^hcoll", HCOLL_ENABLE_MCAST_ALL: "0", UCX_NET_DEVICES: {{ .Values.network.interface | toJson }}}
env:
  ampere: &tcp {<<: *mpi, UCX_TLS: tcp}
  hopper: &queues {<<: *tcp, RX_QUEUE_LEN: "8192", IB_RX_QUEUE_LEN: "8192"}
  rtxpro: *queues
  gb200: {OMPI_MCA_coll: "^hcoll"}
  gb200-v3: {OMPI_MCA_coll: "^hcoll", UCX_NET_DEVICES: {{ .Values.network.interface | toJson }}, UCX_TLS: tcp}
  gb300: {<<: *mpi, RX_QUEUE_LEN: "8192", IB_RX_QUEUE_LEN: "8192"}
{{- end }}

{{/* The fabric of the chosen machine type: its settings' name, its adapters, its virtual functions. */}}
{{- define "oke-h100.roceFabric" -}}
{{- .Run.machine.fabric | toYaml }}
{{- end }}

{{/* Virtual functions of the GPUs that the run uses; each GPU has its own share. */}}
{{- define "oke-h100.roceFunctions" -}}
{{- $machine := .Run.machine }}
{{- div (mul ($machine.fabric.virtualFunctions | default 0) .Run.gpusPerNode) $machine.gpus }}
{{- end }}

{{/* Adapters that NCCL must find on a machine. */}}
{{- define "oke-h100.roceDevices" -}}
{{- if eq .Values.network.mode "sriov" }}{{ include "oke-h100.roceFunctions" . }}
{{- else }}{{ (include "oke-h100.roceFabric" . | fromYaml).adapters | splitList "," | len }}
{{- end }}
{{- end }}

{{/* The file that NCCL reads before its variables. Names of virtual functions are not known before the pod runs. */}}
{{- define "oke-h100.ncclConf" -}}
{{- $fabric := include "oke-h100.roceFabric" . | fromYaml }}
{{- $settings := get (include "oke-h100.roceSettings" . | fromYaml).nccl $fabric.settings }}
{{- $adapters := eq .Values.network.mode "sriov" | ternary "mlx5" (regexReplaceAll "([0-9]+)" $fabric.adapters "mlx5_${1}") }}
{{- range $name, $value := merge (dict "NCCL_DEBUG" "WARN" "NCCL_IB_HCA" $adapters) $settings }}
{{- printf "%s=%s\n" $name $value }}
{{- end }}
{{- end }}
