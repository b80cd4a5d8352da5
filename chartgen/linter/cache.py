"""Cache of a chart's findings, valid until the chart, its values, chartgen or Helm change."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from chartgen.cached import read_cached, write_cached
from chartgen.composer.library import BUILTIN
from chartgen.findings import Finding, finding_of, row_of
from chartgen.helm.program import find_helm
from chartgen.helm.values import Values
from chartgen.linter.examination import Subject
from chartgen.programs import find_tool


def remembered(key: str) -> list[Finding] | None:
    """Return the findings of a key; None when the cache has none."""
    rows = read_cached("lint", key)
    try:
        return None if rows is None else [finding_of(row) for row in rows]
    except (ValueError, TypeError, KeyError):
        return None


def remember(key: str, findings: Iterable[Finding]) -> None:
    """Write findings under a key."""
    write_cached("lint", key, [row_of(finding) for finding in findings])


def key_of(subject: Subject, digest: str, folders: Iterable[Path]) -> str:
    """Return a chart's key, by its digest and all that its findings depend on; raise MissingToolError without Helm."""
    parts = [digest, str(subject.folder), str(Path.cwd()), str(subject.bare), *subject.versions, *_values(subject)]
    parts += _stamps([BUILTIN.parent, *folders])
    parts += _stamps(path for path in (find_helm().executable, find_tool("shellcheck")) if path)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _values(subject: Subject) -> Iterator[str]:
    for name, preset in {**subject.presets, "": [subject.site] if subject.site else []}.items():
        yield name
        if isinstance(preset, Values):
            yield json.dumps(preset.data, sort_keys=True)
            preset = [layer.source for layer in preset.layers if isinstance(layer.source, Path)]  # noqa: PLW2901
        for file in preset:
            yield f"{file}\0{hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ''}"


def _stamps(paths: Iterable[Path]) -> Iterator[str]:
    """Return values that change when a file does, without reading it."""
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if "__pycache__" not in file.parts:
                with contextlib.suppress(OSError):  # a broken link
                    stat = file.stat()
                    yield f"{file}\0{stat.st_mtime_ns}\0{stat.st_size}"
