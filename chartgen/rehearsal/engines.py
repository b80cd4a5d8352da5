"""The programs of a rehearsal: their versions and locations."""

from __future__ import annotations

import gzip
import hashlib
import json
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.errors import MissingToolError, Problem, UsageError, did_you_mean
from chartgen.helm.program import find_program
from chartgen.programs import cache_dir, chosen, find_tool

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
_PARTS: dict[str, tuple[str, ...]] = {
    "volcano": ("volcano-webhook-manager", "volcano-controller-manager", "volcano-scheduler"),
    "cloud-kinds": (),
    "cloud-storage": (),
    "devices": (),
}
_DATA = Path(__file__).parent.parent / "data"


@dataclass(frozen=True)
class Download:
    """An official program of this system."""

    version: str
    url: str  # the file; `oci://REGISTRY/NAME` for an image
    member: str  # the program in the archive or image; empty when the file is the program
    digest: str  # algorithm and checksum of the file, or of the image's index, joined by a colon


@dataclass(frozen=True)
class Engine:
    """One pinned program."""

    name: str  # its name in chartgen
    module: str  # Go module of its source
    version: str  # version of that module
    package: str = ""  # main package, below the module; empty for the module's root
    binary: str = ""  # file name of the program
    # Version that replaces the module's ./staging folders, beside its other replace lines; empty for an unchanged
    # go.mod
    staging: str = ""
    copy_sum: bool = False  # build with the module's own go.sum
    ldflags: tuple[str, ...] = ()  # linker flags that make it report its version
    # Name of a list of objects -> patterns of the module files that contain them
    data: dict[str, list[str]] = field(default_factory=dict)
    edit: dict[str, dict[str, str]] = field(default_factory=dict)  # file of the module -> text in it -> its replacement
    tests: bool = False  # whether only the tests of chartgen use it
    download: Download | None = None  # the official program for this system; None if no checksum of one is known

    @property
    def folder(self) -> Path:
        """Return the folder of its build in the cache; each recipe has its own, so a change leads to a build."""
        # `data` no longer changes a build, but without it all engines would have to be built again.
        recipe = repr((self.package, self.staging, self.copy_sum, self.ldflags, sorted(self.data.items())))
        recipe += repr(sorted(self.edit.items())) if self.edit else ""
        digest = hashlib.sha256(recipe.encode()).hexdigest()[:6]
        return engines_dir() / f"{self.name}-{self.version}-{system()}-{digest}"

    @property
    def program(self) -> Path:
        """Return the path of the program in the cache, built or downloaded; it may not exist yet."""
        found = self.downloaded
        return found if found and found.is_file() and not self.built.is_file() else self.built

    @property
    def built(self) -> Path:
        """Return the path of the built program, which may not exist yet."""
        return self.folder / "bin" / self.binary

    @property
    def downloaded(self) -> Path | None:
        """Return the path of the downloaded program, which may not exist yet; each checksum has its own folder."""
        if not self.download:
            return None
        digest = self.download.digest.partition(":")[2][:6]
        return engines_dir() / f"{self.name}-{self.download.version}-{system()}-{digest}" / "bin" / self.binary


@dataclass(frozen=True)
class EngineStatus:
    """Location of an engine: `path` is None when it is missing, `source` is cache, yours or empty."""

    name: str
    version: str
    path: Path | None
    source: str


def engines_dir() -> Path:
    """Return the folder of the engines that were built or downloaded."""
    return cache_dir() / "engines"


@lru_cache(maxsize=1)
def engine_table() -> dict[str, Engine]:
    """Return the table of pinned engines, by name."""
    from chartgen.helm.yaml import load_file

    table: Any = load_file(_DATA / "engines.yaml").data
    return {name: _engine(name, entry) for name, entry in table["engines"].items()}


def of_users() -> list[str]:
    """Return the names of the engines that users need."""
    return [name for name, each in engine_table().items() if not each.tests]


def engine(name: str) -> Engine:
    """Return one engine; raise UsageError if none has that name."""
    known = engine_table()
    if name not in known:
        raise UsageError(Problem(f"unknown engine {name!r}", hint=did_you_mean(name, known)))
    return known[name]


def find_engine(name: str) -> Path | None:
    """Return an engine's program, or None, in the order of `programs.find_tool`.

    Helm is the same program as in all other commands.

    PATH overrides the cache for Helm, from a minimum version on, and for kubectl, because users expect their installed
    programs. All others come from a variable or the cache; those whose source chartgen edits only from the cache.

    Raises:
        MissingToolError: The variable is set but does not name a program.
    """
    wanted = engine(name)
    if name == "helm":
        return find_program()
    if name == "kubectl":
        return find_tool(name, built=wanted.program)
    own = None if wanted.edit else chosen(name)
    return own or (wanted.program if wanted.program.is_file() else None)


def require(name: str) -> Path:
    """Return an engine's program; raise MissingToolError without it."""
    found = find_engine(name)
    if found is None:
        hint = f"get it once with `chartgen engines get {name}`"
        raise MissingToolError(Problem(f"{name} {engine(name).version} is missing", hint=hint))
    return found


def engine_places(names: Iterable[str] = ()) -> list[EngineStatus]:
    """Return the location of each engine that users need, or of the given ones."""
    rows = []
    for name in names or of_users():
        found = find_engine(name)
        source = "" if found is None else "cache" if engines_dir() in found.parents else "yours"
        version = engine(name).version
        if found and source == "cache":  # a download may be of another release than a build
            version = found.parent.parent.name.removeprefix(f"{name}-").partition("-")[0]
        rows.append(EngineStatus(name, version, found, source))
    return rows


def engine_objects(name: str, file: str) -> list[dict[str, Any]]:
    """Return the objects of an engine's module, such as its CRDs, as `make sums` packed them without descriptions."""
    found: list[dict[str, Any]] = packed(name)[file]
    return found


def packed(name: str) -> dict[str, Any]:
    """Return everything that is packed for an engine: `source`, its module and version, and files of objects."""
    found: dict[str, Any] = json.loads(gzip.decompress((objects_dir() / f"{name}.json.gz").read_bytes()))
    return found


def objects_dir() -> Path:
    """Return the folder of the packed objects."""
    return _DATA / "objects"


def needed_engines(controllers: Iterable[str] = ()) -> list[str]:
    """Return the names of the engines of a control plane with these controllers."""
    return [*CONTROL_PLANE, *(part for name in controllers for part in parts(name))]


def parts(controller: str) -> tuple[str, ...]:
    """Return the names of a controller's engines."""
    return _PARTS.get(controller, (controller,))


def _engine(name: str, entry: dict[str, Any]) -> Engine:
    same = ("module", "version", "package", "binary", "staging", "data", "edit", "tests")
    return Engine(
        name=name,
        copy_sum=entry.get("copySum", False),
        ldflags=tuple(entry.get("ldflags", ())),
        download=next(_downloads(entry), None),
        **{"binary": name, **{key: entry[key] for key in same if key in entry}},
    )


def _downloads(entry: dict[str, Any]) -> Iterator[Download]:
    os, arch = system().split("-")
    for each in entry.get("download", ()):
        if digest := each["sums"].get(system()):
            version = each.get("version", entry["version"])
            url, member = (each.get(key, "").format(version=version, os=os, arch=arch) for key in ("url", "member"))
            yield Download(version, url, member, digest)


def system() -> str:
    """Return this system and processor as Go names them, such as `linux-amd64`."""
    machine = platform.machine().lower()
    processor = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    return f"{platform.system().lower()}-{processor}"
