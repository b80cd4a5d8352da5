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
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.kube import CONFIG_MAP, SECRET, TRAINING_RUNTIME, Cluster, Kind, Object
from chartgen.kube.run_kinds import run_names

# Helm's states of a release after a killed command (pkg/release/common/status.go), and the command that recovers it.
UNFINISHED = {
    "pending-install": "install",
    "pending-upgrade": "upgrade",
    "pending-rollback": "upgrade",
    "uninstalling": "uninstall",
}
# Labels of Helm's stored records (pkg/storage/driver/secrets.go).
_OWNER = {"owner": "helm"}
_DRIVERS = {"": SECRET, "secret": SECRET, "secrets": SECRET, "configmap": CONFIG_MAP, "configmaps": CONFIG_MAP}
# Bytes of an unpacked record, of which Helm stores at most 1 MiB packed (kubernetes, core/v1 MaxSecretSize).
_LARGEST = 10_000_000
# Commas, brackets and ends of lines: each value of JSON, and each node of the YAML inside it, has one at least.
_MOST_MARKS = 400_000
_MARKS = (b",", b"[", b"{", b"\\n")
_MOST_OF_RUN = 100_000  # the same in the documents of a revision's runs; the chart of gke-a3mega has 500
_TEXTS = ("name", "namespace", "status", "description", "chart", "chart_version", "target", "manifest")
_CHART = ("metadata", "values", "schema", "templates", "files")  # the parts of a chart that are restored
# Helm writes nanoseconds, and `Z` or an offset; Python 3.10 reads neither.
_TIME = re.compile(r"(?P<whole>[-0-9]+T[:0-9]+)(?:\.(?P<fraction>\d+))?(?P<zone>Z|[-+]\d\d:\d\d)")
# base64 and JSON raise ValueErrors, gzip an OSError or EOFError and zlib its own error.
_NOT_A_RECORD = (
    *(ValueError, OverflowError, OSError, EOFError, zlib.error),
    *(KeyError, TypeError, AttributeError, RecursionError),
)
_NUMBER = re.compile(r"[0-9]{1,18}")
_SEPARATOR = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
# In any style of YAML: third-party charts may render JSON.
_KIND = re.compile(r"""\bkind["']?:\s*["']?(\w+)""")
_TARGET = "chartgen/target"
_SETUP = "chartgen/setup"
# Annotations of each object that Helm makes (pkg/action/validate.go).
OWNER_ANNOTATION = "meta.helm.sh/release-name"
_OWNER_NAMESPACE = "meta.helm.sh/release-namespace"


@dataclass(frozen=True)
class RevisionRecord:
    """One revision of a release."""

    name: str
    namespace: str
    revision: int  # its number, from 1
    status: str  # Helm's status: deployed, superseded, failed, pending-install, pending-upgrade, uninstalling, ...
    description: str  # note of Helm or of the user
    updated: datetime  # creation time
    chart: str
    chart_version: str
    target: str = ""  # the chartgen target of the chart; empty for third-party charts
    setup: bool = False  # whether the chart is a target's setup chart, which runs nothing
    values: dict[str, Any] = field(default_factory=dict, repr=False)  # the user's values, merged
    manifest: str = field(default="", repr=False)  # all objects, as one YAML stream
    # Whether Helm applied its objects server-side, where other field managers keep their fields
    server_side: bool = False
    stored: str = ""  # name of the object with this record
    # The chart in Helm's record: metadata, templates, values, schema and files; see `restore_chart`
    content: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def objects(self) -> list[Object]:
        """Return the objects of its manifest."""
        return objects(self.manifest)

    @cached_property
    def run_objects(self) -> list[Object]:
        """Return the runs of its manifest with their parts; raise ChartgenError if they are larger than any run."""
        known = {*run_names(), TRAINING_RUNTIME.name}
        text = "\n---\n".join(
            part for part in _SEPARATOR.split(self.manifest) if not known.isdisjoint(_KIND.findall(part))
        )
        if sum(map(text.count, (",", "[", "{", "\n"))) > _MOST_OF_RUN:
            raise ChartgenError(f"the runs of release {self.name} in namespace {self.namespace} are too large to read")
        return objects(text)


def read_records(cluster: Cluster, release: str, namespace: str) -> list[RevisionRecord]:
    """Return all revisions of a release in Helm's store, oldest first; empty when the release does not exist.

    Raises:
        MissingToolError: HELM_DRIVER names a store outside the cluster.
    """
    found = cluster.list(storage_kind(), namespace=namespace, labels={**_OWNER, "name": release})
    return sorted(map(read_record, found), key=lambda record: record.revision)


def read_last_record(cluster: Cluster, release: str, namespace: str) -> RevisionRecord | None:
    """Return the last revision of a release, of which each has a whole chart; None when the release does not exist.

    Raises:
        MissingToolError: HELM_DRIVER names a store outside the cluster.
    """
    names = [item["metadata"]["name"] for item in find_latest(cluster, namespace, release)]
    found = cluster.get(storage_kind(), names[0], namespace) if names else None
    return read_record(found) if found else None


def each_deployed(cluster: Cluster, namespace: str) -> Iterator[Object]:
    """Yield the store object of the deployed revision of each release, for `read_record`."""
    return cluster.each(storage_kind(), namespace=namespace, labels={**_OWNER, "status": "deployed"})


def find_latest(cluster: Cluster, namespace: str, release: str = "") -> list[Object]:
    """Return the metadata of the last revision of a release, empty = all, by namespace and name."""
    labels = {**_OWNER, "name": release} if release else _OWNER
    latest: dict[tuple[str, str], Object] = {}
    for item in cluster.each(storage_kind(), namespace=namespace, labels=labels, metadata_only=True):
        name = item["metadata"].get("namespace", ""), _label(item, "name")
        if name not in latest or _revision(latest[name]) < _revision(item):
            latest[name] = item
    return [item for _, item in sorted(latest.items(), key=lambda pair: pair[0])]


def _label(item: Object, name: str) -> str:
    return str(item["metadata"].get("labels", {}).get(name, ""))


def _revision(item: Object) -> int:
    number = _label(item, "version")
    return int(number) if _NUMBER.fullmatch(number) else 0


def restore_chart(record: RevisionRecord) -> Chart:
    """Return a revision's installed chart from Helm's record; raise ChartgenError for subcharts, which it lacks."""
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
    try:
        return base64.b64decode(encoded).decode()
    except ValueError:
        raise ChartgenError("a chart in Helm's store contains a file that is not text") from None


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


def parse_time(text: str) -> datetime:
    """Parse a time of Helm or Kubernetes, in UTC; raise ValueError for anything else."""
    match = _TIME.fullmatch(str(text))  # whatever an object has there
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    zone = "+00:00" if match["zone"] == "Z" else match["zone"]
    fraction = (match["fraction"] or "0")[:6].ljust(6, "0")
    try:
        return datetime.fromisoformat(f"{match['whole']}.{fraction}{zone}").astimezone(timezone.utc)
    except OverflowError:
        raise ValueError(f"{text!r} is before the first year") from None


def read_record(item: Object) -> RevisionRecord:
    """Return the revision in an object of Helm's store; raise ChartgenError for one that Helm did not write."""
    try:
        return _decoded(item)
    except _NOT_A_RECORD as error:
        name, space = item["metadata"]["name"], item["metadata"].get("namespace", "")
        # its text: a frame that keeps an error, which keeps its frames, stays until Python looks for circles
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)
        text = f"{storage_kind().name} {name} of namespace {space} is not a record of Helm ({reason})"
        hint = "restore it from a backup; if that is impossible, delete it, and the revision with it"
        raise ChartgenError(Problem(text, hint=hint)) from None


def _decoded(item: Object) -> RevisionRecord:
    content = item["data"]["release"]
    if storage_kind() is SECRET:
        content = base64.b64decode(content)
    with gzip.open(io.BytesIO(base64.b64decode(content))) as packed:
        text = packed.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise ValueError(f"it unpacks to more than {_LARGEST / 1e6:.0f} MB")
    if sum(map(text.count, _MARKS)) > _MOST_MARKS:
        raise ValueError("it has more values than any chart")
    kept: dict[str, Any] = json.loads(text.decode())  # in UTF-16 the marks hide
    info, chart = kept["info"], {key: kept["chart"].get(key) for key in _CHART}
    for key in (*kept, *info):
        if key != key.casefold():  # Helm reads it as the one in small letters, and takes the last
            raise ValueError(f"it has {key!r}, which Helm spells in small letters")
    head = chart["metadata"]
    annotations = head.get("annotations") or {}
    record = RevisionRecord(
        name=kept["name"],
        namespace=kept["namespace"],
        revision=int(kept["version"]),
        status=info["status"],
        description=info.get("description", ""),
        updated=parse_time(info["last_deployed"]),
        chart=head["name"],
        chart_version=head["version"],
        target=annotations.get(_TARGET, ""),
        setup=_SETUP in annotations,
        values=kept.get("config") or {},
        manifest=kept.get("manifest", ""),
        server_side=kept.get("apply_method") == "ssa",
        stored=item["metadata"]["name"],
        content=chart,
    )
    _check_parts(record, item)
    return record


def _check_parts(record: RevisionRecord, item: Object) -> None:
    """Reject a record that claims to be another release's, or whose parts have other types than Helm writes.

    Raises:
        ValueError: It is of another release than its object.
        TypeError: A part has another type.
    """
    if (record.namespace, record.name) != (item["metadata"]["namespace"], _label(item, "name")):
        raise ValueError("it is of another release")
    texts = [getattr(record, text) for text in _TEXTS]
    maps = [record.values, record.content["metadata"], record.content["values"] or {}]
    for part in (record.content["templates"] or (), record.content["files"] or ()):
        texts += [each[key] for each in part for key in ("name", "data")]
    texts.append(record.content["schema"] or "")
    if not (all(isinstance(text, str) for text in texts) and all(isinstance(each, dict) for each in maps)):
        raise TypeError("a part of it has another type")
