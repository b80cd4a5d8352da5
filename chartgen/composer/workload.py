"""Workload kinds: the template around a pod, such as a JobSet or an Indexed Job."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chartgen.composer.definition import Field, fields_of, read_definition, record_of, stated
from chartgen.composer.library import BUILTIN
from chartgen.composer.privileges import PRIVILEGES, read_privileges

_PODS = {
    "each": Field("string", "path to a list or map with one sort of pods in each item; absent = one sort of pods"),
    "name": Field("string", "path to the name of the sort in an item; the key of a map is its name"),
    "called": Field("string", "name of the one sort"),
    "template": Field("string", "path to the pod template; `template` when left out"),
    "object": Field("string", "in place of `template`: path to an object of another kind of run, which makes the pods"),
    "count": Field(
        "array",
        "paths to the factors of the number of pods, 1 where they are missing; a second path in a text is a limit",
        item="string",
    ),
    "works": Field("string", "the sort that runs the program: `first`, `last`, a name, or `none`; each when left out"),
    "optional": Field("boolean", "whether it may be missing"),
}
_ENDS = {
    "finished": Field("array", "conditions that mean a good end, or patterns of its phase", item="string"),
    "failed": Field("array", "those of a failure, where none of `finished` is true", item="string"),
    "phase": Field(
        "array", "paths to the parts of its phase, joined by /; left out = it has conditions", item="string"
    ),
    "reason": Field("array", "paths to the parts of the reason of a failure", item="string"),
    "ended": Field("string", "path to the time of its end; the condition's when left out"),
    "restarts": Field("string", "path to the number of restarts"),
    "failures": Field("boolean", "whether that number includes the failure that ends it"),
    "most": Field("string", "path in its spec to the most restarts"),
    "starts": Field("string", "in place of `most`: path in its spec to the most starts"),
}
_CONTROLLER = {
    "name": Field("string", "its name; of those that chartgen knows, such as JobSet, this is enough"),
    "namespace": Field("string", "namespace that its installer uses"),
    "images": Field("array", "names of the images of its Deployments", item="string"),
    "install": Field("string", "address of its installation guide"),
}
# Paths are in its spec, those of `ends` in its status.
_RUN = {
    "plural": Field("string", "its name in paths of the API, such as jobsets", required=True),
    "title": Field("string", "its usual name; `kind` when left out"),
    "pods": Field("array", "its sorts of pods", required=True, items=_PODS),
    "ends": Field("object", "what its status means; left out = it has no end", keys=_ENDS),
    "suspend": Field("string", "path to the field that suspends it; `suspend` when left out"),
    "controller": Field("object", "its controller", keys=_CONTROLLER),
    "podOwner": Field("string", "the kind that owns its pods, where that is another"),
    "startedBy": Field("string", "what starts the processes from a pod of its own, such as mpirun"),
}


@dataclass(frozen=True, eq=False)
class Workload:
    """One workload kind after reading and checks; its other fields are the keys of workload.yaml.

    Args:
        path: Its folder, with the templates of its object in `templates/` and its checks in `validate.tpl`.
    """

    name: str
    path: Path
    description: str = stated("string", "one sentence: what the kind is for", required=True)
    container: str = stated("string", "name of the program's container", required=True)
    api: str = stated("string", "API group and version of its object", required=True)
    kind: str = stated("string", "kind of its object", required=True)
    starts: str = stated(
        "string",
        "the launchers with GPUs that it is for, by their `processes`; `gpu` when left out",
        enum=("gpu", "ray"),
        default="gpu",
    )
    rank_label: str = stated("string", "the pod label that numbers the machines from 0; a kind of Ray has none")
    port: str = stated("string", "name of the rendezvous port; `rendezvous` when left out", default="rendezvous")
    extends: str = stated(
        "string",
        "files, values and rules that the kind starts from: `jobset`, or `mpi`, where mpirun starts the processes",
        enum=("mpi", "jobset"),
    )
    client_side: str = stated(
        "string",
        "why Helm 4 must not apply its object server-side: a controller changes a list of it that belongs to one field"
        " manager as a whole",
    )
    run: dict[str, Any] = stated(
        "object", "where its pods, its end and its controller are; without it no command follows it", keys=_RUN
    )
    queues: tuple[str, ...] = stated("array", "fragments of queues that take it too, such as kueue", item="string")
    privileges: dict[str, str] = stated(PRIVILEGES)
    requires: tuple[str, ...] = stated(
        "array", "fragments or capabilities that every target of the kind must list", item="string"
    )
    sources: tuple[str, ...] = stated("array", "the documents that its fields come from", required=True, item="string")

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return the folders of its files; a file replaces those of its name in earlier ones."""
        return (*((BUILTIN / "workloads" / self.extends,) if self.extends else ()), self.path)


FIELDS = fields_of(Workload)


def load_workload(path: Path) -> Workload:
    """Read a workload kind's folder.

    Raises:
        ChartgenError: All problems of its definition at once.
    """
    document, data = read_definition(path / "workload.yaml", FIELDS)
    return record_of(Workload, data, name=path.name, path=path, privileges=read_privileges(document, data))
