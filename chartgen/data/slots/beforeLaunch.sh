if [[ ! -e /dev/fabric0 ]]; then
  echo "the pod has no fabric adapter" >&2
  exit 1
fi
