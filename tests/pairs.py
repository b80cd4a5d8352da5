"""Every preset of the repository on every target: its files as a user layers them, and machines enough for it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rendered import VALUES

from chartgen.checks import check
from chartgen.composer.assembly import compose
from chartgen.composer.library import open_library
from chartgen.composer.target import Target, load_target
from chartgen.helm.chart import Chart
from chartgen.helm.values import Values, load_values

TARGETS = sorted(open_library().names("target"))
PRESETS = sorted(path.stem for path in VALUES.glob("*.yaml") if not path.name.startswith(("site.", "benchmark")))


@dataclass(frozen=True)
class Run:
    """One preset on one target, with the values that a user would pass."""

    release: str
    values: Values
    machine: str
    nodes: int
    gpus: int


@cache
def chart_of(target: str) -> Chart:
    return compose(load_target(target))


def layers(target: str, preset: str) -> list[Path]:
    """Return a preset's files on a target: preset, overlay, site."""
    overlay = VALUES / target / f"{preset}.yaml"
    return [
        VALUES / f"{preset}.yaml",
        *([overlay] if overlay.is_file() else []),
        VALUES / f"site.{target}.example.yaml",
    ]


def run_of(target: Target, preset: str) -> Run:
    """Layer a preset; without an overlay, take the fewest machines that the checks allow, by doubling."""
    files = layers(target.name, preset)
    data: dict[str, Any] = load_values(files).data
    machine = target.machines[data.get("machineType", target.default_machine.name)]
    launcher = next(each for each in target.launchers if each.name == data["launcher"])
    own = launcher.image or launcher.same_as or data["launchers"][launcher.name].get("image")
    flags = [] if own else [f"launchers.{launcher.name}.image=registry.example.com/own:1"]
    counts = list(_machine_counts(data, machine.gpus))
    layered = {nodes: load_values(files, set_values=[f"nodes={nodes}", *flags]) for nodes in counts}
    nodes = next((nodes for nodes in counts if _is_right(target, layered[nodes])), counts[0])
    return Run(preset.replace(".", "-"), layered[nodes], machine.name, nodes, nodes * machine.gpus)


def _is_right(target: Target, values: Values) -> bool:
    return all(found.severity == "unchecked" for found in check(chart_of(target.name), values))


def _machine_counts(data: dict[str, Any], gpus: int) -> Iterator[int]:
    if "nodes" in data:
        yield data["nodes"]
        return
    sizes = data.get("parallelism", {})
    fewest = math.ceil(math.prod(sizes.get(name, 1) for name in ("tensor", "pipeline", "context")) / gpus)
    yield from (fewest * 2**power for power in range(6))


def runs_of(target: Target) -> Iterator[Run]:
    """Return the runs of a target: every preset whose launcher it offers."""
    names = {launcher.name for launcher in target.launchers}
    for preset in PRESETS:
        if load_values([VALUES / f"{preset}.yaml"]).data["launcher"] in names:
            yield run_of(target, preset)
