"""Charts to manifests: `helm template` of a chart in memory, and its output as plain data."""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chartgen.errors import ChartgenError, Problem
from chartgen.helm.program import find_helm
from chartgen.helm.values import to_json
from chartgen.helm.yaml import Document, Plain, load, require_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chartgen.helm.chart import Chart

# Without a cluster Helm invents a Kubernetes version: its own client library's, or 1.20 in builds without release
# flags, which the charts' kubeVersion refuses. A fixed one keeps renders equal between Helms.
KUBE_VERSION = "1.36.0"

_SEPARATOR = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_SOURCE = re.compile(r"^# Source: (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Manifest:
    """One rendered object.

    Args:
        source: The template that made it, `<chart>/templates/<file>`; empty when Helm does not say.
        document: Its YAML, with positions.
        text: Its YAML as Helm printed it, comments included; positions count from its first line.
    """

    source: str
    document: Document
    text: str = ""

    @property
    def template(self) -> str:
        """The template that made it, relative to the chart's folder."""
        return self.source.partition("/")[2]

    @property
    def data(self) -> dict[str, Any]:
        """The object."""
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
        chart: The chart.
        release: The release name that the templates see.
        namespace: The namespace that they see.
        values: Merged values, as `load_values(...).data`.
        kube_version: The Kubernetes version that they see; default `KUBE_VERSION`.

    Raises:
        ChartgenError: The chart refuses the values, or a template is wrong.
        MissingToolError: There is no fitting Helm.
    """
    helm = find_helm()
    with written(chart) as folder:
        arguments = ["template", release, str(folder), "--namespace", namespace, "--values", "-"]
        return helm.run([*arguments, "--kube-version", kube_version or KUBE_VERSION], to_json(values))


@contextmanager
def written(chart: Chart) -> Iterator[Path]:
    """Write a chart into a temporary folder of its own name, as Helm expects it, for the time of a `with` block."""
    if chart.name in ("", ".", "..") or "/" in chart.name or "\0" in chart.name:
        raise ChartgenError(Problem(f"{chart.name!r} cannot be a chart's name", "Chart.yaml", hint="rename the chart"))
    with tempfile.TemporaryDirectory(prefix="chartgen-") as folder:
        path = Path(folder, chart.name)
        chart.write(path)
        yield path


def manifests(text: str) -> list[Manifest]:
    """Split the output of `helm template` into its objects, each with the template that made it.

    Cutting at lines of `---` is safe: in YAML such a line ends a document wherever it stands at column 0.
    """
    parts = [part for part in _SEPARATOR.split(text) if part.strip()]
    found = [_manifest(part) for part in parts]
    return [manifest for manifest in found if manifest.document.data is not None]


def objects(text: str) -> list[dict[str, Any]]:
    """Read the objects in the output of `helm template`, with scalars resolved as Helm does."""
    return [manifest.data for manifest in manifests(text)]


def _manifest(part: str) -> Manifest:
    match = _SOURCE.search(part)
    source = match[1] if match else ""
    return Manifest(source, load(part, source or "manifest", allow_duplicates=True), part)
