"""A site file contains the names of one cluster, and its first line the chart: another target's names do harm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from chartgen.checks.facts import FACTS
from chartgen.checks.job import Job
from chartgen.composer.origin import Composed
from chartgen.composer.presets import site_example
from chartgen.errors import Problem
from chartgen.findings import Finding, Rule
from chartgen.helm.values import Values
from chartgen.helm.yaml import Keys, dotted
from chartgen.kube.manifest_walk import texts

SITE = Rule(
    "site-of-target",
    "A site file has the names of one target's cluster, and its first line names the chart; `chartgen init` writes it.",
    "pass the site file of this target, or change the first line if the names are those of its cluster",
)
PLACEHOLDER = Rule(
    "placeholders-are-replaced",
    "The example of a site file names accounts, buckets and servers that you replace, in its line `Placeholders`.",
    "enter the names of your cluster",
    severity="warning",
)
_PLACEHOLDERS = re.compile(r"^# Placeholders: (.+)$", re.MULTILINE)
# What `chartgen init` writes; the editor's schemas of presets are in schemas/ instead, and count for all targets.
_MODELINE = re.compile(r"#\s*yaml-language-server:\s*\$schema=(?:\S*/)?charts/([^/\s]+)/values\.schema\.json\s*")


def foreign_sites(origin: Composed, values: Values) -> Iterator[Finding]:
    """Find the site files of other targets than `origin`, the chart's own, among a user's layers."""
    own = {origin.name, f"{origin.name}-setup", f"{origin.name}-{origin.workload}"}
    for layer in values.layers:
        target = _target_of(layer.source) if isinstance(layer.source, Path) else ""
        # the packages of other targets take 20 ms to list
        if target and target not in own and target in origin.target.library.names("target"):
            message = f"is a site file of {target}, and the target is {origin.name}"
            problem = Problem(message, layer.source, 1, 1, f"chartgen init {origin.name} writes one of its own")
            yield Finding(SITE.id, problem)


def placeholders(origin: Composed, values: Values, launcher: str) -> Iterator[Finding]:
    """Find names of the example of a site file in values that a chart uses.

    Args:
        origin: The target whose chart gets the values.
        launcher: The run's program, whose values count alone; empty for a setup chart.
    """
    example = site_example(origin.name, origin.target.library) if values.layers else None
    listed = _PLACEHOLDERS.search(example.read_text("utf-8")) if example else None
    if not (example and listed):
        return
    words = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, listed[1].split(', ')))})(?![\w-])")
    for keys, text in texts(values.data):
        if _is_used(keys, launcher) and (found := words.search(text)):
            file, line, column = values.origin(keys)
            if file and Path(file).name != example.name:
                message = f"{dotted(keys)}: {found[0]} is a name of the example"
                yield Finding(PLACEHOLDER.id, Problem(message, file, line, column, PLACEHOLDER.remedy), "warning")


def unused(job: Job, values: Values) -> tuple[list[str], list[str]]:
    """Return the portable keys that the program of a job beside training has no use for.

    Returns:
        Those set for it, by a flag or from the file on that chooses the program; those of presets, site files and runs.
    """
    keys = [] if job.trains else [key for key in FACTS["given"](job) if key not in job.launcher.owns]
    wanted: list[str] = []
    others: list[str] = []
    for key in keys:
        if depth := values.depth(tuple(key.split("."))):
            source = values.layers[depth - 1].source
            follows = depth > values.presets and depth >= values.depth(("launcher",))
            is_own = follows and not _target_of(source) if isinstance(source, Path) else True
            (wanted if is_own else others).append(key)
    return wanted, others


def _is_used(keys: Keys, launcher: str) -> bool:
    if keys[0] == "launchers":
        return keys[1:2] == (launcher,)
    return (keys[0] == "setup") == (not launcher)


def _target_of(file: Path) -> str:
    """Return the target that the first line of a file names; empty for none."""
    if not file.is_file():  # the standard input has been read
        return ""
    with file.open(encoding="utf-8", errors="replace") as lines:
        found = _MODELINE.fullmatch(lines.readline(1000).rstrip("\n"))
    return found[1] if found else ""
