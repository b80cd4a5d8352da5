"""The size of a release in the cluster: Helm stores it in one Secret, and Kubernetes limits Secrets and ConfigMaps."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Mapping
from typing import Any

from chartgen.errors import ChartgenError, Problem
from chartgen.findings import Finding, PartProblem
from chartgen.helm.chart import Chart
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.yaml import load
from chartgen.kube.manifest_walk import Object
from chartgen.linter.documents import values_of

# Data of a Secret or ConfigMap, in bytes (kubernetes.io, ConfigMap and Secret: 1 MiB).
LIMIT = 1024 * 1024
_READ = {"metadata": "Chart.yaml", "lock": "Chart.lock"}


def configmaps_fit(thing: Object) -> Iterator[PartProblem]:
    """A ConfigMap contains at most 1 MiB; the API server rejects a larger one."""
    if thing.get("kind") == "ConfigMap":
        parts = [*(thing.get("data") or {}).values(), *(thing.get("binaryData") or {}).values()]
        size = sum(len(str(part).encode()) for part in parts)
        if size > LIMIT:
            yield PartProblem(f"has {size:,} bytes; the limit is {LIMIT:,}", at=("data",))


def release_fits(chart: Chart, data: Mapping[str, bytes], manifest: str) -> Iterator[Finding]:
    """Check the size of a release's Secret, of a chart without files that `.helmignore` excludes."""
    # Helm's level takes much longer, and matters only for a large chart
    if stored(chart, data, manifest, level=1) > LIMIT and (size := stored(chart, data, manifest)) > LIMIT:
        message = f"a release takes {size:,} bytes, the Secret that Helm keeps it in has room for {LIMIT:,}"
        yield Finding("release-fits", Problem(message, "Chart.yaml", 1, hint="move data out of the chart"))


def stored(chart: Chart, data: Mapping[str, bytes], manifest: str, level: int = 9) -> int:
    """Return the bytes of a release in its Secret (helm/helm @ e9b85e4, pkg/storage/driver/util.go).

    Helm stores metadata, values, schema, templates and other files, not the subcharts (pkg/chart/v2/chart.go).
    """
    texts = {path: text.encode("utf-8", "surrogateescape") for path, text in chart.files.items()}
    files = {path: content for path, content in {**texts, **data}.items() if not path.startswith("charts/")}
    files.pop("values.yaml", None)
    values = values_of(chart)
    parts: dict[str, Any] = {
        "values": values.data if values else None,
        **{key: _data(files.pop(name, b""), name) for key, name in _READ.items()},
        "schema": _packed(files.pop(SCHEMA_FILE, b"")),
        "templates": [],
        "files": [],
    }
    for path, content in files.items():
        kind = "templates" if path.startswith("templates/") else "files"
        parts[kind].append({"name": path, "data": _packed(content)})
    release = json.dumps({"chart": parts, "manifest": manifest}, separators=(",", ":"), default=str)
    return len(base64.b64encode(gzip.compress(release.encode("utf-8", "replace"), level, mtime=0)))


def _packed(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _data(content: bytes, name: str) -> object:
    try:
        return load(content.decode("utf-8", "replace"), name).data
    except ChartgenError:  # another step reports it
        return None
