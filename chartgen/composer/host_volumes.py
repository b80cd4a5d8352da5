"""Volumes of the machine in a user's fragment: refused before a chart is built, as far as their text is known then."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from chartgen.composer.privileges import only_read, read_privilege, volume_fault
from chartgen.errors import Problem
from chartgen.helm import gotemplate
from chartgen.helm.yaml import load, read_text


def faults_of_volumes(folder: Path, privileges: Collection[str]) -> Iterator[Problem]:
    """Yield the volumes of a fragment that no reason allows, or only one that the fragment does not state.

    Lint judges the rest, such as paths that are values, when it renders the chart.

    Args:
        folder: The fragment's folder, whose slots are valid.
        privileges: Its stated privileges.
    """
    file = folder / "volumes.yaml"
    document = load(gotemplate.mask(read_text(file)) if file.is_file() else "", file, allow_duplicates=True)
    stated = {read_privilege(privilege).path for privilege in privileges}
    writable = {
        mount.get("name") for mount in _items(folder / "volumeMounts.yaml") if mount.get("readOnly") is not True
    }
    for index, volume in enumerate(_list(document.data)):
        source = volume.get("hostPath")
        if not isinstance(source, dict) or not (path := str(source.get("path"))).startswith("/"):
            continue
        at = (index, "hostPath", "path")
        if fault := volume_fault(source, writable=volume.get("name") in writable):
            yield document.problem(fault[0], at, fault[1])
        elif only_read(path) and path not in stated and not gotemplate.is_placeholder(path):
            hint = f"add to privileges in fragment.yaml: `hostPath {path} in program: REASON`"
            yield document.problem(f"{path} is mounted without a stated reason", at, hint)


def _items(file: Path) -> list[Mapping[str, Any]]:
    return _list(load(gotemplate.mask(read_text(file)), file, allow_duplicates=True).data) if file.is_file() else []


def _list(data: Any) -> list[Mapping[str, Any]]:
    return [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []
