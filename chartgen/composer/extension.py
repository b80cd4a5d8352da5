"""Targets that extend another one: which they are, and what their files make together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chartgen.errors import ChartgenError, UsageError, refuse
from chartgen.helm.yaml import dotted, load_file

if TYPE_CHECKING:
    from chartgen.composer.library import Library
    from chartgen.helm.yaml import Document, Keys

_LISTS = ("fragments", "launchers")


def lineage(name: str, library: Library) -> list[str]:
    """Return the name of a target, then of its parent, and so on; chartgen's own extend none.

    Raises:
        UsageError: One of them is unknown.
        ChartgenError: A target extends itself.
    """
    names = [name]
    while not library.is_builtin(path := library.find("target", names[-1])):
        document = load_file(path)
        parent = document.data.get("extends") if isinstance(document.data, dict) else None
        if not isinstance(parent, str):
            break
        if parent in names:
            raise ChartgenError(document.problem(f"{parent!r} extends {name!r} itself", ("extends",), "name another"))
        try:
            library.find("target", parent)
        except UsageError as error:
            problem = error.problems[0]
            raise UsageError(document.problem(problem.message, ("extends",), problem.hint)) from None
        names.append(parent)
    return names


def extended(parent: dict[str, Any], own: dict[str, Any], document: Document) -> dict[str, Any]:
    """Return what a target's file makes of its parent's: maps are merged, its own machines first; lists are replaced.

    Args:
        parent: The content of the parent's file, with those of its own parents.
        own: The content of its own.

    Raises:
        ChartgenError: It leaves out what the parent lacks.
    """
    machines = {**own.get("machines", {}), **parent["machines"]}
    merged: dict[str, Any] = _merged({**parent, "machines": machines}, own)
    merged["fragments"] = [*merged["fragments"], *own.get("add", ())]
    merged["sources"] = list(dict.fromkeys([*own.get("sources", ()), *parent["sources"]]))
    known = {name for key in (*_LISTS, "machines") for name in merged.get(key, ())}
    left_out = own.get("leaveOut", [])
    problems = [
        document.problem(f"{own['extends']} has no fragment, launcher or machine {name!r}", ("leaveOut", index))
        for index, name in enumerate(left_out)
        if name not in known
    ]
    if set(machines) <= set(left_out):
        problems.append(document.problem("leaves out every machine", ("leaveOut",)))
    refuse(problems)
    for key in (*_LISTS, "machines"):
        if isinstance(found := merged.get(key), dict):
            merged[key] = {name: value for name, value in found.items() if name not in left_out}
        elif found is not None:
            merged[key] = [name for name in found if name not in left_out]
    return merged


def _merged(below: Any, above: Any) -> Any:
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: _merged(below.get(key), value) for key, value in above.items()}}


def place_of(document: Document, kind: str, name: str) -> Keys:
    """Return where a target's file names a fragment or launcher; the place of `extends` where its parent does."""
    data: Any = document.data
    for key in (kind, "add"):
        if name in data.get(key, ()):
            return (key, data[key].index(name))
    return ("extends",)


def own_parts(document: Document) -> dict[str, list[str]]:
    """Return what a target's file states itself, by its keys: the names of parts, and the dotted keys of values."""
    data: Any = document.data
    keys = ("machines", "gpus", "fragments", "add", "leaveOut", "launchers")
    own = {key: [*data[key]] for key in keys if key in data}
    if data.get("values"):
        own["values"] = [dotted(keys) for keys, _, _ in document.part(("values",)).leaves()]
    return own
