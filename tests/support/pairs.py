"""Every preset of the repository on every target: its files as a user layers them, and machines enough for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
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


def _first_of_each(share: Callable[[Target], object]) -> list[str]:
    """Return the first target of those that have the same share: the others' charts differ in machines and overlays."""
    first: dict[object, str] = {}
    for name in TARGETS:
        first.setdefault(share(load_target(name)), name)
    return sorted(first.values())


def _capabilities(target: Target) -> object:
    """Return the kind and what gives the pods GPUs, network, storage and queue; others add labels or files alone."""
    return target.workload, tuple(each.path for each in target.fragments if each.provides - {each.name})


# One target of each combination of fragments that matter to placing, and of each that pods without GPUs have.
WIRINGS = _first_of_each(_capabilities)
DATA_WIRINGS = _first_of_each(lambda target: tuple(each.path for each in target.fragments if not each.gpu_only))
PRIVILEGES = _first_of_each(lambda target: tuple(each.path for each in target.fragments if each.privileges))
PRESETS = sorted(path.stem for path in VALUES.glob("*.yaml") if not path.name.startswith(("site.", "benchmark")))
# Presets of Megatron-Bridge need the machines of an overlay, and a network plugin for CUDA 13.
LARGE = {each for each in PRESETS if "launcher: megatron-bridge" in (VALUES / f"{each}.yaml").read_text()}


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


def presets_of(target: str) -> list[str]:
    """Return the presets to try on a target: those with an overlay, and all small ones where `tries_all`."""
    every = tries_all(target)
    return [each for each in PRESETS if (every and each not in LARGE) or (VALUES / target / f"{each}.yaml").is_file()]


def tries_all(target: str) -> bool:
    """Report whether a target has a wiring of its own, and machines for the x86 images that the presets name."""
    return target in WIRINGS and load_target(target).default_machine.labels.get("kubernetes.io/arch") != "arm64"


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
    """Return the runs of a target: every preset of `presets_of` whose launcher it offers."""
    names = {launcher.name for launcher in target.launchers}
    for preset in presets_of(target.name):
        if load_values([VALUES / f"{preset}.yaml"]).data["launcher"] in names:
            yield run_of(target, preset)
