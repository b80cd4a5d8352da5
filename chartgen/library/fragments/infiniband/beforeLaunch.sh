{{- if include "<%= chart %>.infiniband" . }}
# InfiniBand: without these devices NCCL finds no adapter.
compgen -G '/dev/infiniband/uverbs*' >/dev/null ||
  refuse 'the pod got no InfiniBand adapter in /dev/infiniband; does network.resource name the one of your device plugin?'
{{- end }}
