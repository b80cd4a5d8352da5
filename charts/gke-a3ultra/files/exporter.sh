# Step time, tokens per second and loss of this machine's processes for Prometheus. Nothing waits for it, and the run continues
# without it.
METRICS_SOCKET=$(mktemp -d)/steps
export METRICS_SOCKET
python3 /etc/chartgen/exporter.py "$METRICS_SOCKET" &
