"""Workload kinds: the template around a pod, such as a JobSet or an Indexed Job."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chartgen.composer.definition import Field, read_definition
from chartgen.composer.library import BUILTIN
from chartgen.composer.privileges import PRIVILEGES, read_privileges

FIELDS = {
    "description": Field("string", "one sentence: what the kind is for", required=True),
    "container": Field("string", "name of the program's container", required=True),
    "api": Field("string", "API group and version of its object", required=True),
    "kind": Field("string", "kind of its object", required=True),
    "starts": Field(
        "string",
        "the launchers with GPUs that it is for, by their `processes`; `gpu` when left out",
        enum=("gpu", "ray"),
    ),
    "rankLabel": Field("string", "the pod label that numbers the machines from 0; a kind of Ray has none"),
    "port": Field("string", "name of the rendezvous port; `rendezvous` when left out"),
    "extends": Field(
        "string",
        "files, values and rules that the kind starts from: `jobset`, or `mpi`, where mpirun starts the processes",
        enum=("mpi", "jobset"),
    ),
    "clientSide": Field(
        "string",
        "why Helm 4 must not apply its object server-side: a controller changes a list of it that belongs to one field"
        " manager as a whole",
    ),
    "privileges": PRIVILEGES,
    "requires": Field("array", "fragments or capabilities that every target of the kind must list", item="string"),
    "sources": Field("array", "the documents that its fields come from", required=True, item="string"),
}


@dataclass(frozen=True)
class Workload:
    """One workload kind after reading and checks.

    Args:
        name: Its folder's name.
        path: Its folder, with the templates of its object in `templates/` and its checks in `validate.tpl`.
        container: Name of the program's container.
        api: API group and version of its object.
        kind: Kind of its object.
        starts: `processes` of the launchers with GPUs that it is for.
        rank_label: The pod label that numbers the machines from 0; empty without one.
        port: Name of the rendezvous port.
        requires: Names or capabilities that every target of the kind must list.
        extends: Name of the folder beside chartgen's own kinds that it starts from; empty = none.
        client_side: Why Helm must not apply its object server-side; empty = it may.
        privileges: Privilege -> reason.
    """

    name: str
    path: Path
    container: str
    api: str
    kind: str
    starts: str
    rank_label: str
    port: str
    requires: tuple[str, ...]
    extends: str
    client_side: str
    privileges: dict[str, str]

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return the folders of its files; a file replaces those of its name in earlier ones."""
        return (*((BUILTIN / "workloads" / self.extends,) if self.extends else ()), self.path)


def load_workload(path: Path) -> Workload:
    """Read a workload kind's folder.

    Raises:
        ChartgenError: All problems of its definition at once.
    """
    document, found = read_definition(path / "workload.yaml", FIELDS)
    meta: dict[str, Any] = found
    return Workload(
        name=path.name,
        path=path,
        container=meta["container"],
        api=meta["api"],
        kind=meta["kind"],
        starts=meta.get("starts", "gpu"),
        rank_label=meta.get("rankLabel", ""),
        port=meta.get("port", "rendezvous"),
        requires=tuple(meta.get("requires", [])),
        extends=meta.get("extends", ""),
        client_side=meta.get("clientSide", ""),
        privileges=read_privileges(document, meta),
    )
