"""Kubeconfig files, merged as kubectl merges them (kubernetes.io, Organizing Cluster Access Using kubeconfig Files)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.helm.yaml import load_file, require_map, type_name

Entry = dict[str, Any]

# Kinds of entries, each in a list named after it; the fields with files relative to the kubeconfig's folder
# (k8s.io/client-go, tools/clientcmd/loader.go: GetClusterFileReferences, GetAuthInfoFileReferences); and the fields
# that kubectl and Helm honour and lightkube ignores (tools/clientcmd/api/v1/types.go of client-go 0.37.1): without them
# a request has another identity than Helm's, or goes another way.
_KINDS = {
    "cluster": (("certificate-authority",), ("proxy-url", "tls-server-name")),
    "context": ((), ()),
    "user": (("client-certificate", "client-key", "tokenFile"), ("as", "as-uid", "as-groups", "as-user-extra")),
}
_HINT = "name a context without it with --context, or in current-context"


@dataclass
class Merged:
    """The merged content of several kubeconfig files.

    Args:
        current: The current context; empty for none.
        entries: Kind, such as `user` -> name -> content.
        unsupported: Kind and name of an entry -> its fields that chartgen does not support.
    """

    current: str = ""
    entries: dict[str, dict[str, Entry]] = field(default_factory=lambda: {kind: {} for kind in _KINDS})
    unsupported: dict[tuple[str, str], list[Problem]] = field(default_factory=dict)


def merge_kubeconfigs(files: Iterable[Path]) -> Merged:
    """Merge kubeconfig files: for a name in several files, the whole entry of the first file wins.

    A file may lack any of the keys, and may be empty.

    Raises:
        MissingToolError: A file is not a kubeconfig.
    """
    merged = Merged()
    for file in files:
        try:
            _add(merged, file)
        except ChartgenError as error:
            first = error.problems[0]
            problem = Problem(f"is not a kubeconfig: {first.message}", first.path, first.line, first.column, first.hint)
            raise MissingToolError(problem) from None
    return merged


def _add(merged: Merged, file: Path) -> None:
    document = load_file(file)
    data = require_map(document, "it")
    merged.current = merged.current or str(data.get("current-context") or "")
    for key, (paths, unsupported) in _KINDS.items():
        table, name = merged.entries[key], f"{key}s"
        listed = data.get(name) or []
        if not isinstance(listed, list):
            raise ChartgenError(document.problem(f"{name} must be a list, not {type_name(listed)}", (name,)))
        for index, each in enumerate(listed):
            entry = each.get(key) or {} if isinstance(each, dict) and "name" in each else None
            if not isinstance(each, dict) or not isinstance(entry, dict):
                raise ChartgenError(document.problem(f"this needs a name and a map {key}", (name, index)))
            title = str(each["name"])
            if title in table:
                continue
            table[title] = _absolute(dict(entry), paths, file.absolute().parent)
            merged.unsupported[key, title] = [
                document.problem(
                    f"chartgen does not support field {what!r} of {key} {title!r}", (name, index, key, what), _HINT
                )
                for what in unsupported
                if entry.get(what)
            ]


def _absolute(entry: Entry, paths: Iterable[str], folder: Path) -> Entry:
    """Resolve the paths of an entry, and the path of a credential plugin that is given as a path."""
    for path in paths:
        if entry.get(path):
            entry[path] = str(folder / entry[path])
    plugin = entry.get("exec")
    if isinstance(plugin, dict) and "/" in str(plugin.get("command")):
        entry["exec"] = {**plugin, "command": str(folder / plugin["command"])}
    return entry
