"""Workload kinds: the skeleton that holds a pod, such as a JobSet or an Indexed Job."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chartgen.definition import Field, read_definition

FIELDS = {
    "description": Field("string", "one sentence: what the kind is for", required=True),
    "container": Field("string", "name of the program's container", required=True),
    "api": Field("string", "API group and version of its object", required=True),
    "requires": Field("array", "fragments or capabilities that every target of the kind must list", of="string"),
    "sources": Field("array", "the documents that its fields come from", required=True, of="string"),
}


@dataclass(frozen=True)
class Workload:
    """One workload kind, read and checked.

    Args:
        name: Its folder's name.
        path: Its folder, with the templates of its object in `templates/` and its checks in `validate.tpl`.
        container: Name of the program's container.
        api: API group and version of its object.
        requires: Names or capabilities that every target of the kind must list.
    """

    name: str
    path: Path
    container: str
    api: str
    requires: tuple[str, ...]


def load_workload(path: Path) -> Workload:
    """Read a workload kind's folder.

    Raises:
        ChartgenError: All problems of its definition at once.
    """
    meta: dict[str, Any] = read_definition(path / "workload.yaml", FIELDS)[1]
    return Workload(path.name, path, meta["container"], meta["api"], tuple(meta.get("requires", [])))
