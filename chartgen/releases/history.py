"""Helm's records of a release: every revision with its chart, values and manifest, read in one request.

Helm 3 and 4 keep each revision in a Secret (a ConfigMap with HELM_DRIVER=configmap) as gzipped JSON
(pkg/storage/driver/util.go). The helm program would need a process for each revision.
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
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.kube import CONFIG_MAP, SECRET, Cluster, Kind, Object

# Labels of Helm's stored records (pkg/storage/driver/secrets.go).
_OWNER = {"owner": "helm"}
_DRIVERS = {"": SECRET, "secret": SECRET, "secrets": SECRET, "configmap": CONFIG_MAP, "configmaps": CONFIG_MAP}
# Helm writes nanoseconds, and `Z` or an offset; Python 3.10 reads neither.
# Limit of an unpacked record: Helm's own limit of a chart (pkg/chart/loader/archive), which the record contains.
_LARGEST = 100 * 1024 * 1024
_TIME = re.compile(r"(?P<whole>[-0-9]+T[:0-9]+)(?:\.(?P<fraction>\d+))?(?P<zone>Z|[-+]\d\d:\d\d)")
_TARGET = "chartgen/target"
_SETUP = "chartgen/setup"
# Annotations of each object that Helm makes (pkg/action/validate.go).
OWNER_ANNOTATION = "meta.helm.sh/release-name"
_OWNER_NAMESPACE = "meta.helm.sh/release-namespace"


@dataclass(frozen=True)
class Record:
    """One revision of a release.

    Args:
        name: The release's name.
        namespace: Its namespace.
        revision: Number of the revision, from 1.
        status: Helm's status: deployed, superseded, failed, pending-install, pending-upgrade, uninstalling, ...
        description: Note of Helm or of the user.
        updated: Creation time.
        chart: Name of its chart.
        chart_version: Version of its chart.
        target: The chartgen target of the chart; empty for third-party charts.
        setup: Whether the chart is a target's setup chart, which runs nothing.
        values: The user's values, merged.
        manifest: All objects, as one YAML stream.
        server_side: Whether Helm applied its objects server-side, where other field managers keep their fields.
        stored: Name of the object with this record.
        content: The chart in Helm's record: metadata, templates, values, schema and files; see `restore_chart`.
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
    setup: bool = False
    values: dict[str, Any] = field(default_factory=dict, repr=False)
    manifest: str = field(default="", repr=False)
    server_side: bool = False
    stored: str = ""
    content: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def objects(self) -> list[Object]:
        """Return the objects of its manifest."""
        return objects(self.manifest)


def read_records(cluster: Cluster, release: str, namespace: str) -> list[Record]:
    """Return all revisions of a release in Helm's store, oldest first; empty when the release does not exist.

    Raises:
        MissingToolError: HELM_DRIVER names a store outside the cluster.
    """
    found = cluster.list(storage_kind(), namespace=namespace, labels={**_OWNER, "name": release})
    return sorted(map(read_record, found), key=lambda record: record.revision)


def find_deployed(cluster: Cluster, namespace: str) -> list[Object]:
    """Return the store object of the deployed revision of each release, for `read_record`.

    Args:
        cluster: The cluster.
        namespace: The namespace; empty = all.
    """
    return cluster.list(storage_kind(), namespace=namespace, labels={**_OWNER, "status": "deployed"})


def find_latest(cluster: Cluster, namespace: str) -> list[Object]:
    """Return the store object of the last revision of each release, for `read_record`.

    Args:
        cluster: The cluster.
        namespace: The namespace; empty = all.
    """
    latest: dict[tuple[str, str], Object] = {}
    for item in cluster.list(storage_kind(), namespace=namespace, labels=_OWNER):
        labels = item["metadata"]["labels"]
        name = item["metadata"]["namespace"], labels.get("name", "")
        if name not in latest or _revision(latest[name]) < _revision(item):
            latest[name] = item
    return list(latest.values())


def _revision(item: Object) -> int:
    number = item["metadata"]["labels"].get("version", "")
    return int(number) if number.isdigit() else 0


def restore_chart(record: Record) -> Chart:
    """Return the installed chart of a revision from Helm's record.

    Raises:
        ChartgenError: It has subcharts, which Helm does not keep.
    """
    kept = record.content
    if kept["metadata"].get("dependencies"):
        hint = f"use `helm rollback {record.name} {record.revision}`"
        raise ChartgenError(Problem(f"chart {record.chart} has subcharts, which Helm keeps rendered only", hint=hint))
    # JSON is YAML; a chart that is only rendered needs no comments
    files = {"Chart.yaml": json.dumps(kept["metadata"]), "values.yaml": json.dumps(kept.get("values") or {})}
    if kept.get("schema"):
        files[SCHEMA_FILE] = _text(kept["schema"])
    for item in [*(kept.get("templates") or ()), *(kept.get("files") or ())]:
        files[item["name"]] = _text(item["data"])
    return Chart(record.chart, dict(sorted(files.items())))


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode()


def storage_kind() -> Kind:
    """Return the kind of the objects that contain Helm's records."""
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
    """Parse a time of Helm or Kubernetes, in UTC.

    Raises:
        ValueError: It is not such a time.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    zone = "+00:00" if match["zone"] == "Z" else match["zone"]
    fraction = (match["fraction"] or "0")[:6].ljust(6, "0")
    return datetime.fromisoformat(f"{match['whole']}.{fraction}{zone}").astimezone(timezone.utc)


def read_record(item: Object) -> Record:
    """Return the revision in an object of Helm's store.

    Raises:
        ChartgenError: It is not in Helm's format, for example after a manual edit.
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
    annotations = head.get("annotations") or {}
    return Record(
        name=kept["name"],
        namespace=kept["namespace"],
        revision=int(kept["version"]),
        status=info["status"],
        description=info.get("description", ""),
        updated=read_time(info["last_deployed"]),
        chart=head["name"],
        chart_version=head["version"],
        target=annotations.get(_TARGET, ""),
        setup=_SETUP in annotations,
        values=kept.get("config") or {},
        manifest=kept.get("manifest", ""),
        server_side=kept.get("apply_method") == "ssa",
        stored=item["metadata"]["name"],
        content=kept["chart"],
    )
