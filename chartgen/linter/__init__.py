"""Lint of a chart: one step after another, from its files over Helm's own checks to policy and the scripts in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from chartgen.errors import ChartgenError, Problem
from chartgen.findings import Finding
from chartgen.linter.boundary import escapes, refused
from chartgen.linter.steps import Layers, Subject, examine

if TYPE_CHECKING:
    from chartgen.helm.chart import Chart

__all__ = ["Layers", "Subject", "examine", "find_presets", "lint"]

# What Helm takes for a chart's name (helm.sh/helm/v4 pkg/chart/v2/util/create.go, chartName), not begun with a dot.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,249}")
_NAMES = "use letters, digits, '-', '_' and '.'"


def lint(chart: Chart, presets: Mapping[str, Layers] | None = None) -> list[Finding]:
    """Check a chart with no values and with every preset.

    Args:
        chart: The chart.
        presets: Name -> values, or their files with the lowest layer first.

    Returns:
        Everything that was found, sorted by place; an empty list for a clean chart.

    Raises:
        MissingToolError: There is no fitting Helm.
    """
    return examine(Subject(chart, presets=presets or {})).findings


def find_presets(chart: str, folder: Path) -> dict[str, list[Path]]:
    """Find the presets that a folder holds for a chart: preset, overlay, and the example site of the target on top.

    Args:
        chart: The chart's name, which is its target's.
        folder: A folder laid out as chartgen's own `values/`.

    Returns:
        Name of the workload -> values files, lowest layer first.

    Raises:
        ChartgenError: The chart's name leads elsewhere, or a file is a link out of the folder.
    """
    if not _NAME.fullmatch(chart):
        raise ChartgenError(Problem(f"{chart[:60]!r} cannot be a chart's name", "Chart.yaml", hint=_NAMES))
    found = {}
    for overlay in sorted((folder / chart).glob("*.yaml")):
        layers = [folder / overlay.name, overlay, folder / f"site.{chart}.example.yaml"]
        if outside := [layer for layer in layers if escapes(layer, folder) or escapes(layer, Path.cwd())]:
            raise ChartgenError(refused("preset", "is a link out of the folder of presets", outside[0]))
        found[overlay.stem] = [layer for layer in layers if layer.is_file()]
    return found
