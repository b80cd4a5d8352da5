"""What Helm has recorded of a release: every revision with its chart, values and manifest, read in one request.

Helm 3 and 4 keep each revision in a Secret (a ConfigMap with HELM_DRIVER=configmap) as gzipped JSON
(pkg/storage/driver/util.go). Asking the helm program instead takes a process for each revision.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import re
import zlib
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects
from chartgen.kube import CONFIG_MAP, SECRET, Cluster, Kind, Object

# Labels that Helm gives to all that it keeps (pkg/storage/driver/secrets.go).
_OWNER = {"owner": "helm"}
_DRIVERS = {"": SECRET, "secret": SECRET, "secrets": SECRET, "configmap": CONFIG_MAP, "configmaps": CONFIG_MAP}
# Helm writes nanoseconds, and `Z` or an offset; Python 3.10 reads neither.
# Of a record unpacked: Helm's own limit of a chart (pkg/chart/loader/archive), of which a record is a part.
_LARGEST = 100 * 1024 * 1024
_TIME = re.compile(r"(?P<whole>[-0-9]+T[:0-9]+)(?:\.(?P<fraction>\d+))?(?P<zone>Z|[-+]\d\d:\d\d)")
_TARGET = "chartgen/target"
# What Helm writes on each object that it makes (pkg/action/validate.go).
OWNER_ANNOTATION = "meta.helm.sh/release-name"
_OWNER_NAMESPACE = "meta.helm.sh/release-namespace"


@dataclass(frozen=True)
class Record:
    """One revision of a release.

    Args:
        name: The release's name.
        namespace: Its namespace.
        revision: Number of the revision, from 1.
        status: Helm's word: deployed, superseded, failed, pending-install, pending-upgrade, uninstalling, ...
        description: What Helm or the user said of it.
        updated: When it was made.
        chart: Name of its chart.
        chart_version: Version of its chart.
        target: The chartgen target that the chart was composed from; empty for charts of others.
        values: The user's values, merged.
        manifest: All objects, as one YAML text.
        server_side: Whether Helm applied its objects server-side, where other field managers keep what is theirs.
        stored: Name of the object that keeps this record.
        content: The chart as Helm keeps it: metadata, templates, values, schema and files; see `restore_chart`.
    """

    name: str
    namespace: str
    revision: int
    status: str
    description: str
    updated: datetime
    chart: str
    chart_version: str
    target: str = ""
    values: dict[str, Any] = field(default_factory=dict, repr=False)
    manifest: str = field(default="", repr=False)
    server_side: bool = False
    stored: str = ""
    content: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def objects(self) -> list[Object]:
        """The objects of its manifest."""
        return objects(self.manifest)


def read_records(cluster: Cluster, release: str, namespace: str) -> list[Record]:
    """Return all revisions that Helm still keeps of a release, oldest first; none when there is no such release.

    Raises:
        MissingToolError: HELM_DRIVER names a store that is not in the cluster.
    """
    found = cluster.list(storage_kind(), namespace=namespace, labels={**_OWNER, "name": release})
    return sorted(map(read_record, found), key=lambda record: record.revision)


def find_deployed(cluster: Cluster, namespace: str) -> list[Object]:
    """Return what Helm keeps of the deployed revision of each release, for `read_record`.

    Args:
        cluster: The cluster.
        namespace: The namespace; empty = all.
    """
    return cluster.list(storage_kind(), namespace=namespace, labels={**_OWNER, "status": "deployed"})


def restore_chart(record: Record) -> Chart:
    """Return the chart of a revision as it was installed, from what Helm has kept of it.

    Raises:
        ChartgenError: It has subcharts, which Helm does not keep.
    """
    kept = record.content
    if kept["metadata"].get("dependencies"):
        hint = f"use `helm rollback {record.name} {record.revision}`"
        raise ChartgenError(Problem(f"chart {record.chart} has subcharts, which Helm keeps rendered only", hint=hint))
    # JSON is YAML, and comments do not matter for a chart that is only rendered
    files = {"Chart.yaml": json.dumps(kept["metadata"]), "values.yaml": json.dumps(kept.get("values") or {})}
    if kept.get("schema"):
        files["values.schema.json"] = _text(kept["schema"])
    for item in [*(kept.get("templates") or ()), *(kept.get("files") or ())]:
        files[item["name"]] = _text(item["data"])
    return Chart(record.chart, dict(sorted(files.items())))


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode()


def storage_kind() -> Kind:
    """Return the kind of object that Helm keeps its records in."""
    driver = os.environ.get("HELM_DRIVER", "")
    if driver not in _DRIVERS:
        problem = f"HELM_DRIVER={driver} keeps releases outside the cluster, where chartgen cannot read them"
        raise MissingToolError(Problem(problem, hint="use secret, Helm's default, or configmap"))
    return _DRIVERS[driver]


def is_owned(item: Object, release: str, namespace: str) -> bool:
    """Report whether Helm made a live object for a release."""
    annotations = item["metadata"].get("annotations") or {}
    return (annotations.get(OWNER_ANNOTATION), annotations.get(_OWNER_NAMESPACE)) == (release, namespace)


def read_time(text: str) -> datetime:
    """Read a time as Helm and Kubernetes write it, in UTC.

    Raises:
        ValueError: It is no such time.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    zone = "+00:00" if match["zone"] == "Z" else match["zone"]
    fraction = (match["fraction"] or "0")[:6].ljust(6, "0")
    return datetime.fromisoformat(f"{match['whole']}.{fraction}{zone}").astimezone(timezone.utc)


def read_record(item: Object) -> Record:
    """Return the revision that an object of Helm's store keeps.

    Raises:
        ChartgenError: Somebody has changed it, so that it is not what Helm writes.
    """
    try:
        return _decoded(item)
    # base64 and JSON raise ValueErrors, gzip an OSError or EOFError and zlib its own error
    except (ValueError, OSError, EOFError, zlib.error, KeyError, TypeError, AttributeError, RecursionError) as error:
        name = f"{storage_kind().name} {item['metadata']['name']}"
        reason = f"no {error}" if isinstance(error, KeyError) else error
        hint = "restore it from a backup; if that is impossible, delete it, and the revision with it"
        raise ChartgenError(Problem(f"{name} is not a record of Helm ({reason})", hint=hint)) from None


def _decoded(item: Object) -> Record:
    content = item["data"]["release"]
    if storage_kind() is SECRET:
        content = base64.b64decode(content)
    with gzip.open(io.BytesIO(base64.b64decode(content))) as packed:
        text = packed.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise ValueError(f"it unpacks to more than {_LARGEST / 1e6:.0f} MB")
    kept: dict[str, Any] = json.loads(text)
    info, head = kept["info"], kept["chart"]["metadata"]
    return Record(
        name=kept["name"],
        namespace=kept["namespace"],
        revision=int(kept["version"]),
        status=info["status"],
        description=info.get("description", ""),
        updated=read_time(info["last_deployed"]),
        chart=head["name"],
        chart_version=head["version"],
        target=(head.get("annotations") or {}).get(_TARGET, ""),
        values=kept.get("config") or {},
        manifest=kept.get("manifest", ""),
        server_side=kept.get("apply_method") == "ssa",
        stored=item["metadata"]["name"],
        content=kept["chart"],
    )
