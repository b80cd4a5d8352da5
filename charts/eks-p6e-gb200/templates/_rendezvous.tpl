{{/*
How torchrun's machines find each other: by a rendezvous that can be used again after a failure. There they are
numbered by their addresses, in the order of text. So the first machine gives its name, the only one that anybody looks
up, and each other one a text that sorts behind it by number: ranks follow NODE_RANK, as logs and topology do.
*/}}
{{- define "eks-p6e-gb200.rendezvousFlags" -}}
{{- $wait := .Values.rendezvous.timeoutSeconds | int64 -}}
{{- $etcd := include "eks-p6e-gb200.etcd" . -}}
--max-restarts={{ .Run.restarts }}
--local-addr="$MASTER_ADDR$( ((NODE_RANK == 0)) || printf '.%05d' "$NODE_RANK")"
--rdzv-id={{ .Run.name }}"$name"
{{- if $etcd }}
--rdzv-backend=etcd-v2
--rdzv-endpoint={{ $etcd }}:2379
--rdzv-conf=join_timeout={{ $wait }}
{{- else }}
--rdzv-backend=c10d
--rdzv-endpoint="$MASTER_ADDR:$port"
--rdzv-conf="is_host=$((NODE_RANK == 0)),read_timeout={{ $wait }},join_timeout={{ $wait }}"
{{- end }}
{{- end }}

{{/* torchrun numbers the attempts, and the first process of each compares the checkpoints. */}}
{{- define "eks-p6e-gb200.attempt" -}}{{- end }}
{{- define "eks-p6e-gb200.beforeProcess" }}
{{- if .Run.restarts }}
progress() {
  {{- if .Run.mustProgress }}
(
{{ .Files.Get "files/progress.sh" | trim }}
)
  {{- else }}
  true
  {{- end }}
}
{{ .Files.Get "files/again.sh" | replace "FINAL" (include "eks-p6e-gb200.finalExits" . | fromJsonArray | join " ") | trim }}
{{- end }}
{{- end }}

{{- define "eks-p6e-gb200.beforeRendezvous" }}
{{- if .Run.restarts }}
# Each attempt gets a store of its own: in a shared one, ranks read the addresses of the attempt that failed.
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
{{- end }}
{{- with include "eks-p6e-gb200.etcd" . }}
{{- $wait := $.Values.rendezvous.timeoutSeconds | int64 }}
# {{ $.Values.rendezvous.etcdImage }}: torchrun gives up at once when it does not answer yet.
if ! timeout {{ $wait }} bash -c 'until : </dev/tcp/{{ . }}/2379; do sleep 2; done' 2>/dev/null; then
  echo 'chartgen: no etcd at {{ . }}:2379 after {{ $wait }} s; check its pod' >&2
  exit 1
fi
{{- end }}
{{- end }}
