{{- if include "<%= chart %>.infiniband" . }}
# InfiniBand: without these devices NCCL finds no adapter.
if ! compgen -G '/dev/infiniband/uverbs*' >/dev/null; then
  echo 'chartgen: the pod got no InfiniBand adapter in /dev/infiniband; does network.resource name the one of your device plugin?' >&2
  exit 78
fi
{{- end }}
