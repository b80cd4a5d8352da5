"""Workload kinds: the template around a pod, such as a JobSet or an Indexed Job."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chartgen.composer.definition import read_definition, record_of
from chartgen.composer.library import BUILTIN
from chartgen.composer.privileges import read_privileges


@dataclass(frozen=True)
class Workload:
    """One workload kind after reading and checks; its other fields are the keys of workload.yaml."""

    name: str
    path: Path  # its folder, with the templates of its object in `templates/` and its checks in `validate.tpl`
    description: str
    container: str
    api: str
    kind: str
    sources: tuple[str, ...]
    starts: str = "gpu"
    rank_label: str = ""
    port: str = "rendezvous"
    extends: str = ""
    client_side: str = ""
    run: dict[str, Any] = field(default_factory=dict)
    queues: tuple[str, ...] = ()
    privileges: dict[str, str] = field(default_factory=dict)
    requires: tuple[str, ...] = ()

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return the folders of its files; a file replaces those of its name in earlier ones."""
        return (*((BUILTIN / "workloads" / self.extends,) if self.extends else ()), self.path)


def load_workload(path: Path) -> Workload:
    """Read a workload kind's folder; raise ChartgenError with all problems of its definition."""
    document, data = read_definition(path / "workload.yaml", "workload")
    return record_of(Workload, data, name=path.name, path=path, privileges=read_privileges(document, data))
