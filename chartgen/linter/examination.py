"""What one lint of a chart has: its subject, and the findings so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from chartgen.errors import Problem
from chartgen.findings import UNFINISHED, Finding
from chartgen.helm.chart import Chart
from chartgen.helm.values import Values
from chartgen.linter.limits import OutOfTimeError, limited
from chartgen.linter.render import Rendering

Layers: TypeAlias = Values | Sequence[Path]
_MORE = "give it more time with --limit, or make the chart smaller"


@dataclass(frozen=True)
class Subject:
    """A chart to lint."""

    chart: Chart
    folder: Path | None = None  # its folder; None for a chart in memory
    # Name -> values, or their files with the lowest layer first
    presets: Mapping[str, Layers] = field(default_factory=dict)
    bare: bool = True  # whether to render it without values too
    site: Path | None = None  # the example of a site file, for a chart that refuses its defaults
    faults: Sequence[Finding] = ()  # faults of its files; with any, Helm is not run
    # Kubernetes versions to render for; empty for the oldest and newest that the chart supports
    versions: Sequence[str] = ()
    data: Mapping[str, bytes] = field(default_factory=dict)  # its binary files, path -> bytes
    schemas: Mapping[str, str] = field(default_factory=dict)  # schemas that are not among its text files, path -> text
    crds: Mapping[str, str] = field(default_factory=dict)  # objects that Helm installs without rendering, path -> text
    # Templates of packaged subcharts that may call `lookup`, path -> text
    packaged: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LintStep:
    """A completed step, and its duration in seconds."""

    name: str
    seconds: float


@dataclass
class Examination:
    """The findings so far, the completed steps, and Helm's renderings."""

    subject: Subject
    findings: list[Finding] = field(default_factory=list)
    steps: list[LintStep] = field(default_factory=list)
    renderings: list[Rendering] = field(default_factory=list)
    limit: float | None = None

    def add(self, name: str, findings: Callable[[], Iterable[Finding]]) -> None:
        """Run and time a step; report it when it exceeds the limit."""
        start = time.perf_counter()
        found: list[Finding] = []
        try:
            with limited(self.limit) if self.limit else nullcontext():
                found += findings()
        except OutOfTimeError:
            message = f"the step {name!r} did not end within {self.limit:g} s, so it was not checked"
            found.append(Finding(UNFINISHED, Problem(message, "Chart.yaml", 1, hint=_MORE), "unchecked"))
        self.findings += found
        self.steps.append(LintStep(name, time.perf_counter() - start))
