"""The programs that a rehearsal runs: which versions, and where they are found."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.errors import MissingToolError, Problem, UsageError, did_you_mean
from chartgen.helm.program import find_program
from chartgen.programs import cache_dir, chosen_tool

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
_PARTS: dict[str, tuple[str, ...]] = {
    "volcano": ("volcano-webhook-manager", "volcano-controller-manager", "volcano-scheduler"),
    "cloud-kinds": (),
    "cloud-storage": (),
}
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


@dataclass(frozen=True)
class OnPath:
    """Which program on PATH is as good as the pinned one.

    Args:
        argv: Arguments that make it print its version.
        minimum: Lowest version.
        below: First version that is too new.
    """

    argv: tuple[str, ...]
    minimum: str
    below: str


@dataclass(frozen=True)
class Engine:
    """One pinned program.

    Args:
        name: What chartgen calls it.
        module: Go module of its source.
        version: Version of that module.
        package: Main package, below the module; empty for the module's root.
        binary: File name of the program.
        staging: Version that replaces the module's ./staging folders, beside its other replace lines; empty when the
            module's go.mod is built as it is.
        edit: File of the module -> text in it -> what it is built with instead.
        copy_sum: Build with the module's own go.sum.
        ldflags: Linker flags that make it report its version.
        data: File to write -> patterns of module files, whose YAML documents it holds as a JSON list.
        path: What is accepted from PATH; None when only the built one will do, because its data files are needed.
    """

    name: str
    module: str
    version: str
    package: str = ""
    binary: str = ""
    staging: str = ""
    copy_sum: bool = False
    ldflags: tuple[str, ...] = ()
    data: dict[str, list[str]] = field(default_factory=dict)
    edit: dict[str, dict[str, str]] = field(default_factory=dict)
    path: OnPath | None = None

    @property
    def folder(self) -> Path:
        """Where the cache keeps it: a folder for each way of building it, so that a changed recipe is built anew."""
        recipe = repr((self.package, self.staging, self.copy_sum, self.ldflags, sorted(self.data.items())))
        recipe += repr(sorted(self.edit.items())) if self.edit else ""
        digest = hashlib.sha256(recipe.encode()).hexdigest()[:6]
        return engines_dir() / f"{self.name}-{self.version}-{_go_os()}-{_go_arch()}-{digest}"

    @property
    def program(self) -> Path:
        """Where the built program is, or would be."""
        return self.folder / "bin" / self.binary


@dataclass(frozen=True)
class EngineStatus:
    """Where an engine stands: `path` is None when it is missing, `source` is cache, yours or empty."""

    name: str
    version: str
    path: Path | None
    source: str


def engines_dir() -> Path:
    """Return the folder that holds the built engines."""
    return cache_dir() / "engines"


@lru_cache(maxsize=1)
def engines() -> dict[str, Engine]:
    """Return the table of pinned engines, by name."""
    from chartgen.helm.yaml import load_file

    source = Path(__file__).parent.parent / "data" / "engines.yaml"
    table: Any = load_file(source).data
    return {name: _engine(name, entry) for name, entry in table["engines"].items()}


def engine(name: str) -> Engine:
    """Return one engine.

    Raises:
        UsageError: There is no engine of that name.
    """
    known = engines()
    if name not in known:
        raise UsageError(Problem(f"unknown engine {name!r}", hint=did_you_mean(name, known)))
    return known[name]


def find(name: str) -> Path | None:
    """Find an engine's program, or None: $CHARTGEN_<NAME>, PATH, then the cache, the order of `tools.find_tool`.

    Helm is the one that all other commands use.

    PATH wins over the cache, because what people install is what they mean to use, but only with a version that
    works here: Helm and kubectl from old enough on, the parts of the control plane at the pinned minor version only.
    kwok and the controllers come from the cache alone, because the files that were copied beside them are needed.

    Raises:
        MissingToolError: The variable is set but names no program.
    """
    wanted = engine(name)
    if name == "helm":
        return find_program()
    if wanted.path and (found := chosen_tool(wanted.name) or _on_path(wanted.binary, wanted.path)):
        return found
    return wanted.program if wanted.program.is_file() else None


def require(name: str) -> Path:
    """Find an engine's program.

    Raises:
        MissingToolError: It is neither in the cache nor, acceptably, on PATH.
    """
    found = find(name)
    if found is None:
        hint = f"build it once with `chartgen engines build {name}`"
        raise MissingToolError(Problem(f"{name} {engine(name).version} is missing", hint=hint))
    return found


def status(names: Iterable[str] = ()) -> list[EngineStatus]:
    """Say of each engine, or of those named, where it is."""
    rows = []
    for name in names or engines():
        found = find(name)
        source = "" if found is None else "cache" if engines_dir() in found.parents else "yours"
        rows.append(EngineStatus(name, engine(name).version, found, source))
    return rows


def documents(name: str, file: str) -> list[dict[str, Any]]:
    """Read the YAML documents that were copied from an engine's module, such as its CRDs.

    Raises:
        MissingToolError: The engine was not built.
    """
    require(name)
    found: list[dict[str, Any]] = json.loads((engine(name).folder / "data" / file).read_text("utf-8"))
    return found


def needed(controllers: Iterable[str] = ()) -> list[str]:
    """Name the engines of a control plane with these controllers."""
    return [*CONTROL_PLANE, *(part for name in controllers for part in parts(name))]


def parts(controller: str) -> tuple[str, ...]:
    """Name the engines that a controller consists of."""
    return _PARTS.get(controller, (controller,))


def parse_version(text: str) -> tuple[int, int, int] | None:
    """Read the first version number in a text, such as the output of `helm version --short`."""
    match = _VERSION.search(text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def _engine(name: str, entry: dict[str, Any]) -> Engine:
    path = entry.get("path")
    return Engine(
        name=name,
        module=entry["module"],
        version=entry["version"],
        package=entry.get("package", ""),
        binary=entry.get("binary", name),
        staging=entry.get("staging", ""),
        copy_sum=entry.get("copySum", False),
        ldflags=tuple(entry.get("ldflags", ())),
        data=entry.get("data", {}),
        edit=entry.get("edit", {}),
        path=OnPath(tuple(path["argv"]), path["minimum"], path["below"]) if path else None,
    )


def _on_path(binary: str, accepted: OnPath) -> Path | None:
    found = shutil.which(binary)
    if found is None:
        return None
    version = _version_of(found, accepted.argv)
    fits = version is not None and _bound(accepted.minimum) <= version < _bound(accepted.below)
    return Path(found) if fits else None


@lru_cache(maxsize=32)
def _version_of(program: str, argv: tuple[str, ...]) -> tuple[int, int, int] | None:
    try:
        answer = subprocess.run(
            [program, *argv], capture_output=True, encoding="utf-8", errors="replace", timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stdout)


def _bound(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _go_os() -> str:
    return platform.system().lower()


def _go_arch() -> str:
    machine = platform.machine().lower()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
