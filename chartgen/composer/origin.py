"""What a chart was composed from: a target that is known here, one that no folder has, or nothing of chartgen's.

A build writes it into the annotations of Chart.yaml, so that a chart says the same by name and by folder.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from chartgen.helm.yaml import load, require_map

if TYPE_CHECKING:
    from chartgen.composer.library import Library
    from chartgen.composer.target import Target
    from chartgen.helm.chart import Chart

# Annotations of Chart.yaml: the target's name, the workload kind of a run chart, and the mark of a setup chart.
TARGET = "chartgen/target"
WORKLOAD = "chartgen/workload"
SETUP = "chartgen/setup"


@dataclass(frozen=True)
class Composed:
    """A chart of a target that is known here.

    Args:
        target: The target.
        workload: The workload kind of its runs.
        setup: Whether it is the setup chart.
    """

    target: Target
    workload: str
    setup: bool = False

    @property
    def name(self) -> str:
        """The target's name."""
        return self.target.name


@dataclass(frozen=True)
class Unknown:
    """A chart of a target that no folder here holds: nobody can tell what its values ask for.

    Args:
        name: The target's name.
        setup: Whether it is the setup chart.
    """

    name: str
    setup: bool = False


@dataclass(frozen=True)
class Foreign:
    """A chart that chartgen has not composed."""

    name: str = ""
    setup: bool = False


Origin: TypeAlias = Composed | Unknown | Foreign


def identified(chart: Chart, library: Library) -> Chart:
    """Return a chart with what it was composed from, looked up in a library."""
    return replace(chart, origin=origin_of(chart, library))


def origin_of(chart: Chart, library: Library | None = None) -> Origin:
    """Return what a chart was composed from.

    Args:
        chart: A composed chart, or one that was read.
        library: Where targets are looked for; chartgen's own and CHARTGEN_PATH when None.

    Raises:
        ChartgenError: The target is there and has a defect.
    """
    if chart.origin is not None:
        return chart.origin
    from chartgen.composer.library import open_library
    from chartgen.composer.target import load_target

    notes = annotations_of(chart)
    name, setup = str(notes.get(TARGET, "")), str(notes.get(SETUP, "")) == "true"
    library = library or open_library()
    if not name:
        return Foreign()
    if name not in library.names("target"):
        return Unknown(name, setup)
    target = load_target(name, library)
    return Composed(target, str(notes.get(WORKLOAD) or target.workload), setup)


def annotations_of(chart: Chart) -> dict[str, Any]:
    """Return the annotations of Chart.yaml; empty where there are none."""
    notes = require_map(load(chart.files.get("Chart.yaml", ""), "Chart.yaml"), "Chart.yaml").get("annotations")
    return notes if isinstance(notes, dict) else {}
