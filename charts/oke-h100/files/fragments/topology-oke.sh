# Where this machine is in OCI's RDMA network, from wide to narrow: HPC island, network block, local block. Shapes
# without a capacity topology have only network block and rack. Without an answer the file stays empty.
mkdir -p /run/chartgen
python3 - >/run/chartgen/place <<'PYTHON' || true
import json
import urllib.request

FIELDS = ("customerHPCIslandId", "customerNetworkBlock", "customerLocalBlock")
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(path):
    url = f"http://169.254.169.254/opc/v2/{path}"
    request = urllib.request.Request(url, headers={"Authorization": "Bearer Oracle"})
    try:
        with opener.open(request, timeout=3) as answer:
            found = json.load(answer)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


host = ask("host")
data = ask("host/rdmaTopologyData") or host.get("rdmaTopologyData") or {}
place = [data.get(field) for field in FIELDS]
if not all(place):
    place = [host.get("networkBlockId"), host.get("rackId")]
if all(place):
    print(*place)
PYTHON
