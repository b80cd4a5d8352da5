"""The origin of a chart: a known target, an unknown target, or not chartgen.

A build writes the origin into the annotations of Chart.yaml, so that it is the same by name and by folder.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from chartgen.errors import UsageError
from chartgen.helm.yaml import load, require_map

if TYPE_CHECKING:
    from chartgen.composer.library import Library
    from chartgen.composer.target import Target
    from chartgen.helm.chart import Chart

# Annotations of Chart.yaml: the target's name, the workload kind of a run chart, the mark of a setup chart,
# the launchers of a chart that excludes others, the policies that it obeys, and the mark of a chart that Helm 4 must
# not apply server-side.
TARGET = "chartgen/target"
WORKLOAD = "chartgen/workload"
SETUP = "chartgen/setup"
LAUNCHERS = "chartgen/launchers"
POLICIES = "chartgen/policies"
APPLY, CLIENT_SIDE = "chartgen/apply", "client-side"


@dataclass(frozen=True)
class Composed:
    """A chart of a known target."""

    target: Target
    workload: str  # the workload kind of its runs
    setup: bool = False  # whether it is the setup chart
    # Whether only its annotations report this, so that its files may have been changed since
    by_annotation: bool = False

    @property
    def name(self) -> str:
        """Return the target's name."""
        return self.target.name


class Unknown(NamedTuple):
    """A chart, or with `setup` a setup chart, of a target in no folder: chartgen cannot interpret its values."""

    name: str
    setup: bool = False


class Foreign(NamedTuple):
    """A chart that chartgen did not compose."""

    name: str = ""
    setup: bool = False


Origin: TypeAlias = Composed | Unknown | Foreign


def identified(chart: Chart, library: Library) -> Chart:
    """Return a chart with its origin, looked up in a library."""
    return replace(chart, origin=origin_of(chart, library))


def origin_of(chart: Chart, library: Library | None = None) -> Origin:
    """Return the origin of a chart.

    Args:
        chart: A composed chart, or one that was read.
        library: Where to find targets; chartgen's own and CHARTGEN_PATH when None.

    Raises:
        ChartgenError: The target exists and has a defect.
    """
    if isinstance(chart.origin, (Composed, Unknown, Foreign)):
        return chart.origin
    from chartgen.composer.library import open_library
    from chartgen.composer.target import load_target, of_kind, with_launchers

    notes = annotations_of(chart)
    name, setup = str(notes.get(TARGET, "")), str(notes.get(SETUP, "")) == "true"
    library = library or open_library()
    if not name:
        return Foreign()
    if not library.search("target", name) and name not in library.names("target"):
        return Unknown(name, setup)
    target = load_target(name, library)
    try:
        target = with_launchers(target, str(notes.get(LAUNCHERS) or "").split())
    except UsageError:
        return Unknown(name, setup)
    kind = str(notes.get(WORKLOAD) or target.workload)
    return Composed(of_kind(target, kind), kind, setup, by_annotation=True)


def annotations_of(chart: Chart) -> dict[str, Any]:
    """Return the annotations of Chart.yaml; empty if it has none."""
    notes = require_map(load(chart.files.get("Chart.yaml", ""), "Chart.yaml"), "Chart.yaml").get("annotations")
    return notes if isinstance(notes, dict) else {}
