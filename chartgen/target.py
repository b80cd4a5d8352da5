"""Targets: one YAML file that names a cloud's machines, a workload kind, fragments, launchers and default values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chartgen.definition import Field, read_definition
from chartgen.errors import ChartgenError
from chartgen.fragment import Fragment, load_fragment
from chartgen.launcher import Launcher, load_launcher
from chartgen.library import Library, open_library
from chartgen.yamltext import Document

MACHINE_FIELDS = {
    "gpus": Field("integer", "GPUs of one machine", required=True),
    "gpu": Field("string", "GPU model, such as h100-80gb", required=True),
    "capacity": Field("object", "what a node of this type offers: resource name -> quantity, quoted", required=True),
    "labels": Field("object", "labels of such a node beyond the instance type"),
    "taints": Field("array", "taints of such a node"),
}
FIELDS = {
    "description": Field("string", "one sentence: which machines of which cloud", required=True),
    "platform": Field("string", "gke, oke, eks or onprem", required=True),
    "workload": Field("string", "the default workload kind", required=True),
    "machines": Field("object", "machine type -> what it offers", required=True, items=MACHINE_FIELDS),
    "fragments": Field("array", "fragments in the order in which they fill a slot", required=True),
    "launchers": Field("array", "launchers that the chart offers; the first is the default", required=True),
    "values": Field("object", "default values that differ from the fragments' own"),
    "sources": Field("array", "the vendor documents that its values come from", required=True),
}


@dataclass(frozen=True)
class Machine:
    """One machine type: GPUs per machine, GPU model, and what a node of it looks like to Kubernetes."""

    name: str
    gpus: int
    gpu: str
    capacity: dict[str, str]
    labels: dict[str, str]
    taints: list[dict[str, str]]


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
    return Target(
        name=name,
        description=meta["description"],
        platform=meta["platform"],
        workload=meta["workload"],
        machines={key: _machine(key, machine) for key, machine in meta["machines"].items()},
        fragments=tuple(load_fragment(_find(document, library, "fragment", i)) for i in range(len(meta["fragments"]))),
        launchers=tuple(load_launcher(_find(document, library, "launcher", i)) for i in range(len(meta["launchers"]))),
        values=meta.get("values", {}),
        sources=tuple(meta["sources"]),
        document=document,
        library=library,
    )


def _find(document: Document, library: Library, kind: str, index: int) -> Path:
    data: Any = document.data
    key = f"{kind}s"
    try:
        return library.find(kind, str(data[key][index]))
    except ChartgenError as error:
        found = error.problems[0]
        raise type(error)(document.problem(found.message, (key, index), found.hint)) from None


def _machine(name: str, data: dict[str, Any]) -> Machine:
    labels, taints = data.get("labels", {}), data.get("taints", [])
    return Machine(name, data["gpus"], data["gpu"], data["capacity"], labels, taints)
