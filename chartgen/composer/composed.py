"""Charts that an earlier command composed, from the user's cache, as long as no file that made them has changed.

Reading one takes a tenth of the time to compose it, and needs neither jinja2 nor the composer.
"""

from __future__ import annotations

import json
import os
import time
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from stat import S_ISLNK
from typing import Any, Literal, overload

from chartgen.cached import read_cached, write_cached
from chartgen.composer.library import BUILTIN, KINDS
from chartgen.composer.origin import Composed
from chartgen.composer.target import Target, of_kind, with_launchers
from chartgen.helm.chart import Chart

_LOADED = time.time()
# Seconds. The file systems that people use count changes in steps of 2 (FAT) or less.
_STEP = 2
_UNKNOWN = 2**63  # a change time that no chart is cached with


@overload
def composed_chart(
    function: Literal["compose", "compose_interface"], target: Target, workload: str | None = None
) -> Chart: ...
@overload
def composed_chart(function: Literal["compose_setup"], target: Target, workload: str | None = None) -> Chart | None: ...
def composed_chart(function: str, target: Target, workload: str | None = None) -> Chart | None:
    """Return what a function of `assembly` composes; raise its errors."""
    key = key_of_inputs(target, function, workload)
    row = read_cached("charts", key) if key else None
    if row is None:
        chart: Chart | None = getattr(import_module("chartgen.composer.assembly"), function)(target, workload)
        if key:
            write_cached("charts", key, _row(chart))
        return chart
    return _chart(row, target) if row else None


def _row(chart: Chart | None) -> dict[str, Any]:
    if chart is None:
        return {}
    assert isinstance(chart.origin, Composed)  # noqa: S101  for mypy: what is composed has this origin
    origin = {"workload": chart.origin.workload, "setup": chart.origin.setup}
    return {"name": chart.name, "files": chart.files, "chosen": chart.origin.target.chosen, "origin": origin}


def _chart(row: dict[str, Any], target: Target) -> Chart:
    if row["chosen"] != [*target.chosen]:
        target = with_launchers(target, row["chosen"])
    target = of_kind(target, row["origin"]["workload"])
    return Chart(row["name"], row["files"], Composed(target, **row["origin"]))


def key_of_inputs(target: Target, *use: str | None) -> str:
    """Return a digest of all that a chart and a use of it depend on; empty if a file has just changed."""
    roots = target.library.roots
    paths = [
        target.path,
        *(fragment.path for fragment in target.every_fragment),
        *(launcher.path for launcher in target.every_launcher),
    ]
    if not all(any(path.is_relative_to(root) for root in roots) for path in paths):
        return ""  # of an installed package
    folders = [root / kind for root in roots[1:] for kind in KINDS.values()]
    stamps = [*_own_stamps(), *(stamp for folder in folders for stamp in _stamps(folder))]
    if max(changed for _, changed, *_ in stamps) > (_LOADED - _STEP) * 1e9:
        return ""
    parts = [
        target.name,
        str(target.path),
        target.kind,
        target.chosen,
        target.values,
        list(map(str, roots)),
        use,
        stamps,
    ]
    return sha256(json.dumps(parts).encode("utf-8", "surrogateescape")).hexdigest()


@cache
def _own_stamps() -> list[tuple[str, int, int, int]]:
    """Return the stamps of chartgen and of what joins its texts; once, since a change time never comes back."""
    specs = map(find_spec, ("jinja2", "ruamel.yaml"))
    return [*_stamps(BUILTIN.parent), *(_stamp(spec.origin) for spec in specs if spec and spec.origin)]


def _stamps(root: Path) -> list[tuple[str, int, int, int]]:
    """Return the stamps of all files below a folder, and of links to folders."""
    paths: list[str] = []
    for folder, below, files in os.walk(root):
        below[:] = sorted({*below} - {"__pycache__"})
        paths += [os.path.join(folder, name) for name in sorted(files)]  # noqa: PTH118  a fifth of Path's time
        paths += [path for name in below if os.path.islink(path := os.path.join(folder, name))]  # noqa: PTH114, PTH118
    return list(map(_stamp, paths))


def _stamp(path: str) -> tuple[str, int, int, int]:
    """Return what differs when a file does: its change time, which no program can set, its size and its number."""
    try:
        state = os.lstat(path)
    except FileNotFoundError:  # removed since it was listed
        return path, _UNKNOWN, 0, 0
    # what a link leads to may change unseen
    return path, _UNKNOWN if S_ISLNK(state.st_mode) else state.st_ctime_ns, state.st_size, state.st_ino
