"""Lint of a chart in steps: its files, Helm's own checks, policy and its scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from chartgen.errors import ChartgenError, Problem
from chartgen.findings import Finding
from chartgen.helm.chart import Chart
from chartgen.linter.config import escapes, rejected_path
from chartgen.linter.examination import Layers, Subject
from chartgen.linter.steps import run_steps

__all__ = ["Layers", "Subject", "find_presets", "lint", "run_steps"]

# Helm's pattern for chart names (helm.sh/helm/v4 pkg/chart/v2/util/create.go, chartName), without a leading dot.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,249}")
_NAMES = "use letters, digits, '-', '_' and '.'"


def lint(chart: Chart, presets: Mapping[str, Layers] | None = None) -> list[Finding]:
    """Check a chart without values and with every preset.

    Args:
        presets: Name -> values, or their files with the lowest layer first.

    Returns:
        All findings, sorted by place; an empty list for a clean chart.

    Raises:
        MissingToolError: No suitable Helm is found.
    """
    return run_steps(Subject(chart, presets=presets or {})).findings


def find_presets(chart: str, folder: Path, *, base: Path | None = None) -> dict[str, list[Path]]:
    """Find a folder's presets for a chart: preset, overlay, and the example site of the target on top.

    Args:
        chart: The chart's name, which is its target's.
        folder: A folder laid out as chartgen's own `values/`.
        base: The folder of the presets that are not in the first.

    Returns:
        Name of the workload -> values files, lowest layer first.

    Raises:
        ChartgenError: The chart's name leads out of the folder, or a file is a link out of it.
    """
    if not _NAME.fullmatch(chart):
        raise ChartgenError(Problem(f"{chart[:60]!r} cannot be a chart's name", "Chart.yaml", hint=_NAMES))
    found = {}
    for overlay in sorted((folder / chart).glob("*.yaml")):
        preset = folder / overlay.name
        preset = base / overlay.name if base and not preset.is_file() else preset
        layers = [preset, overlay, folder / f"site.{chart}.example.yaml"]
        if outside := [layer for layer in layers if escapes(layer, folder) or escapes(layer, Path.cwd())]:
            raise ChartgenError(rejected_path("preset", "is a link out of the folder of presets", outside[0]))
        found[overlay.stem] = [layer for layer in layers if layer.is_file()]
    return found
