"""What a release takes in the cluster: Helm keeps it in one Secret, and Kubernetes bounds Secrets and ConfigMaps."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator

from chartgen.chart import Chart
from chartgen.errors import Problem
from chartgen.findings import Complaint, Finding
from chartgen.linter.objects import Object

# Data of a Secret or ConfigMap, in bytes (kubernetes.io, ConfigMap and Secret: 1 MiB).
LIMIT = 1024 * 1024


def configmaps_fit(thing: Object) -> Iterator[Complaint]:
    """A ConfigMap holds at most 1 MiB; the API server refuses a larger one."""
    if thing.get("kind") == "ConfigMap":
        parts = [*(thing.get("data") or {}).values(), *(thing.get("binaryData") or {}).values()]
        size = sum(len(str(part).encode()) for part in parts)
        if size > LIMIT:
            yield Complaint(f"holds {size:,} bytes, at most {LIMIT:,} fit", "move the data to a volume", ("data",))


def release_fits(chart: Chart, manifest: str) -> Iterator[Finding]:
    """Estimate the Secret of a release as Helm makes it: the chart, its files and the manifest as packed JSON.

    Args:
        chart: The chart.
        manifest: What it renders to.
    """
    files = {path: base64.b64encode(text.encode()).decode() for path, text in chart.files.items()}
    packed = gzip.compress(json.dumps({"chart": files, "manifest": manifest}).encode(), 9, mtime=0)
    size = len(base64.b64encode(packed))
    if size > LIMIT:
        message = f"a release takes {size:,} bytes, the Secret that Helm keeps it in has room for {LIMIT:,}"
        yield Finding("release-fits", Problem(message, "Chart.yaml", 1, hint="move data out of the chart"))
