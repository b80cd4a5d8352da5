"""Charts to manifests: `helm template` of a chart in memory, and its output as plain data."""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chartgen.errors import ChartgenError, Problem
from chartgen.helm.program import find_helm
from chartgen.helm.values import to_json
from chartgen.helm.yaml import Document, Plain, load, require_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chartgen.helm.chart import Chart

# Without a cluster, Helm uses the Kubernetes version of its client library, or 1.20 in builds without release flags,
# which the charts' kubeVersion rejects. A fixed version keeps renders equal between Helm versions.
KUBE_VERSION = "1.37.0"

_SHARED: dict[int, Path] = {}  # the identity of a chart -> its folder
SEPARATOR = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_SOURCE = re.compile(r"^# Source: (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Manifest:
    """One rendered object."""

    source: str  # the template that made it, `<chart>/templates/<file>`; empty when Helm does not report it
    document: Document  # its YAML, with positions
    text: str = ""  # its YAML as Helm printed it, comments included; positions count from its first line

    @property
    def template(self) -> str:
        """Return the template that made it, relative to the chart's folder."""
        return self.source.partition("/")[2]

    @property
    def data(self) -> dict[str, Any]:
        """Return the object."""
        return require_map(self.document, "a manifest")


def render(
    chart: Chart,
    release: str,
    namespace: str,
    values: dict[str, Plain],
    kube_version: str | None = None,
) -> str:
    """Render a chart as `helm template` does.

    Args:
        kube_version: The Kubernetes version that the templates see; default `KUBE_VERSION`.

    Raises:
        ChartgenError: The chart rejects the values, or a template is wrong.
        MissingToolError: A suitable Helm is missing.
    """
    helm = find_helm()
    with written_chart(chart) as folder:
        flags = ["--namespace", namespace, "--values", "-", "--kube-version", kube_version or KUBE_VERSION]
        return helm.render(["template", *flags, "--", release, str(folder)], to_json(values))


@contextmanager
def written_chart(chart: Chart, *, shared: bool = False) -> Iterator[Path]:
    """Write a chart into a temporary folder with the chart's name, as Helm expects; a context manager.

    Args:
        shared: Whether all that needs this chart meanwhile, in any thread, uses the same folder; it has to end before.
    """
    if known := _SHARED.get(id(chart)):
        yield known
        return
    if chart.name in ("", ".", "..") or "/" in chart.name or "\0" in chart.name:
        raise ChartgenError(Problem(f"{chart.name!r} cannot be a chart's name", "Chart.yaml", hint="rename the chart"))
    with tempfile.TemporaryDirectory(prefix="chartgen-") as folder:
        path = Path(folder, chart.name)
        chart.write(path)
        if shared:
            _SHARED[id(chart)] = path
        try:
            yield path
        finally:
            if shared:
                del _SHARED[id(chart)]


def manifests(text: str) -> list[Manifest]:
    """Split the output of `helm template` into its objects, each with the template that made it.

    Cutting at lines of `---` is safe: in YAML such a line at column 0 always ends a document.
    """
    parts = [part for part in SEPARATOR.split(text) if part.strip()]
    found = [manifest for part in parts for manifest in _items(_manifest(part))]
    return [manifest for manifest in found if manifest.document.data is not None]


def objects(text: str) -> list[dict[str, Any]]:
    """Read the objects in the output of `helm template`; resolve scalars as Helm does."""
    return [manifest.data for manifest in manifests(text)]


def _items(manifest: Manifest) -> list[Manifest]:
    """Return the objects of a list, as Helm creates them, or the one object that is none.

    What has items is a list, whatever its kind (kubernetes/apimachinery, unstructured/helpers.go: `decodeToList`; seen
    with Helm 4.3.1 and a kube-apiserver). Lists in lists, which Helm 4 refuses, are judged too.
    """
    data = manifest.document.data
    items = data.get("items") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(items, list):
        return [manifest]
    parts = [manifest.document.part(("items", at)) for at in range(len(items))]
    kind = {"apiVersion": data.get("apiVersion"), "kind": str(data.get("kind")).removesuffix("List")}
    whole = [_named(part, kind) for part in parts]
    return [each for part in whole for each in _items(replace(manifest, document=part))]


def _named(item: Document, kind: dict[str, Plain]) -> Document:
    """Return an item of a list, with the kind of the list if it has none."""
    data = item.data
    nameless = isinstance(data, dict) and not data.get("kind") and not data.get("apiVersion")
    return replace(item, data={**data, **kind}) if isinstance(data, dict) and nameless else item


def _manifest(part: str) -> Manifest:
    match = _SOURCE.search(part)
    source = match[1] if match else ""
    return Manifest(source, load(part, source or "manifest", allow_duplicates=True), part)
