"""Targets: one YAML file that names a cloud's machines, a workload kind, fragments, launchers and default values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chartgen.composer.definition import Field, read_definition
from chartgen.composer.fragment import Fragment, load_fragment
from chartgen.composer.launcher import Launcher, load_launcher
from chartgen.composer.library import Library, open_library
from chartgen.errors import ChartgenError, did_you_mean
from chartgen.helm.yaml import Document

MACHINE_FIELDS = {
    "gpus": Field("integer", "GPUs of one machine", required=True),
    "gpu": Field("string", "GPU model, such as h100-80gb", required=True),
    "capacity": Field(
        "object", "what a node of this type offers: resource name -> quantity, quoted", required=True, of="string"
    ),
    "labels": Field("object", "labels of such a node beyond the instance type", of="string"),
    "taints": Field("array", "taints of such a node", of="object"),
    "fabric": Field("object", "what the target's fabric fragment must know of this type, such as its network adapters"),
}
FIELDS = {
    "description": Field("string", "one sentence: which machines of which cloud", required=True),
    "platform": Field("string", "the cloud", required=True, enum=("gke", "oke", "eks", "onprem")),
    "workload": Field("string", "the default workload kind", required=True),
    "machines": Field("object", "machine type -> what it offers", required=True, items=MACHINE_FIELDS),
    "fragments": Field("array", "fragments in the order in which they fill a slot", required=True, of="string"),
    "launchers": Field(
        "array", "launchers that the chart offers; the first is the default", required=True, of="string"
    ),
    "values": Field("object", "default values that differ from the fragments' own"),
    "sources": Field("array", "the vendor documents that its values come from", required=True, of="string"),
}


@dataclass(frozen=True)
class Machine:
    """One machine type: GPUs per machine, GPU model, what Kubernetes sees of a node of it, facts of its fabric."""

    name: str
    gpus: int
    gpu: str
    capacity: dict[str, str]
    labels: dict[str, str]
    taints: list[dict[str, str]]
    fabric: dict[str, Any]


@dataclass(frozen=True)
class Target:
    """One target with its fragments and launchers, read and checked."""

    name: str
    description: str
    platform: str
    workload: str
    machines: dict[str, Machine]
    fragments: tuple[Fragment, ...]
    launchers: tuple[Launcher, ...]
    values: dict[str, Any]
    sources: tuple[str, ...]
    document: Document
    library: Library

    @property
    def path(self) -> Path:
        """The target's file."""
        return Path(self.document.path)

    @property
    def default_launcher(self) -> Launcher:
        """The first launcher of the file."""
        return self.launchers[0]

    @property
    def default_machine(self) -> Machine:
        """The first machine type of the file."""
        return next(iter(self.machines.values()))


def load_target(name: str, library: Library | None = None) -> Target:
    """Read a target and everything that it names.

    Args:
        name: The target's name.
        library: Where to look; chartgen's own definitions and CHARTGEN_PATH when None.

    Raises:
        UsageError: Unknown target, fragment, launcher.
        ChartgenError: Problems of their files.
    """
    library = library or open_library()
    path = library.find("target", name)
    document, data = read_definition(path, FIELDS)
    meta: dict[str, Any] = data
    launchers = tuple(map(load_launcher, _find_all(document, library, "launcher", meta["launchers"])))
    _check_same_as(document, launchers)
    if not library.is_builtin(path):
        _check_gpus(document, meta["machines"])
    return Target(
        name=name,
        description=meta["description"],
        platform=meta["platform"],
        workload=meta["workload"],
        machines={key: _machine(key, machine) for key, machine in meta["machines"].items()},
        fragments=tuple(map(load_fragment, _find_all(document, library, "fragment", meta["fragments"]))),
        launchers=launchers,
        values=meta.get("values", {}),
        sources=tuple(meta["sources"]),
        document=document,
        library=library,
    )


def _find_all(document: Document, library: Library, kind: str, names: list[str]) -> list[Path]:
    paths = []
    for index, name in enumerate(names):
        place = (f"{kind}s", index)
        if name in names[:index]:
            raise ChartgenError(document.problem(f"{kind} {name!r} is listed twice", place, "remove one of the two"))
        try:
            paths.append(library.find(kind, name))
        except ChartgenError as error:
            found = error.problems[0]
            message = f"{found.message} ({found.path})" if found.path else found.message
            raise type(error)(document.problem(message, place, found.hint)) from None
    return paths


def _check_same_as(document: Document, launchers: tuple[Launcher, ...]) -> None:
    names = [launcher.name for launcher in launchers]
    for index, launcher in enumerate(launchers):
        if launcher.same_as and launcher.same_as not in names:
            message = f"launcher {launcher.name!r} uses the image of {launcher.same_as!r}, which is not listed"
            raise ChartgenError(document.problem(message, ("launchers", index), f"list {launcher.same_as!r} too"))


def _check_gpus(document: Document, machines: dict[str, dict[str, Any]]) -> None:
    """Refuse GPU models without a row in data/gpus.yaml: nothing could be said of a job's memory and formats."""
    from chartgen.data.gpus import all_gpus

    problems = [
        document.problem(
            f"unknown GPU model {machine['gpu']!r} of {name}",
            ("machines", name, "gpu"),
            did_you_mean(machine["gpu"], all_gpus()),
        )
        for name, machine in machines.items()
        if machine["gpu"] not in all_gpus()
    ]
    if problems:
        raise ChartgenError(problems)


def _machine(name: str, data: dict[str, Any]) -> Machine:
    labels, taints = data.get("labels", {}), data.get("taints", [])
    return Machine(name, data["gpus"], data["gpu"], data["capacity"], labels, taints, data.get("fabric", {}))
