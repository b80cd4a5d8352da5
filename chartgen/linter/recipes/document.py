"""The values of a recipe: which were read, which could not be carried over, and which are missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chartgen.checks.secrets import looks_secret
from chartgen.errors import Problem
from chartgen.helm.set_flags import dotted
from chartgen.helm.values import Values
from chartgen.helm.yaml import Keys
from chartgen.masking import HIDDEN

_EMPTY: tuple[Any, ...] = (None, "", [], {})


class Recipe:
    """The values of one recipe.

    Args:
        values: The recipe's values files and flags, merged as Helm merges them.

    Attributes:
        left: Values that are not carried over because the run is the same without them.
        missing: Problems that stop the conversion, because the run is not defined.
    """

    def __init__(self, values: Values) -> None:
        self.values = values
        self.left: list[Problem] = []
        self.missing: list[Problem] = []
        self._taken: list[Keys] = []

    @property
    def path(self) -> Path:
        """Return the recipe's own file, the first one; the working directory when it consists of flags alone."""
        sources = [layer.source for layer in self.values.layers if isinstance(layer.source, Path)]
        return sources[0] if sources else Path()

    def take(self, *keys: str | int) -> Any:
        """Return a value, or None if it is missing, and mark it as read."""
        self._taken.append(keys)
        return self.peek(*keys)

    def peek(self, *keys: str | int) -> Any:
        """Return a value, or None if it is missing."""
        found: Any = self.values.data
        for key in keys:
            within = isinstance(found, dict) if isinstance(key, str) else isinstance(found, list) and key < len(found)
            found = found[key] if within and (isinstance(key, int) or key in found) else None
        return None if found in _EMPTY and not isinstance(found, bool) else found

    def items(self, *keys: str | int) -> list[tuple[Keys, dict[str, Any]]]:
        """Return the maps of a list with their places; other items are left."""
        found = self.take(*keys)
        if found is not None and not isinstance(found, list):
            self.leave(keys, "is not a list")
        entries = list(enumerate(found)) if isinstance(found, list) else []
        for index, entry in entries:
            if not isinstance(entry, dict):
                self.leave((*keys, index), "is not a map")
        return [((*keys, index), entry) for index, entry in entries if isinstance(entry, dict)]

    def map(self, *keys: str | int) -> dict[str, Any]:
        """Return a map, empty if it is missing; a value that is not a map is left."""
        found = self.take(*keys)
        if found is not None and not isinstance(found, dict):
            self.leave(keys, "is not a map")
        return dict(found) if isinstance(found, dict) else {}

    def number(self, *keys: str | int) -> int | None:
        """Return a whole number, also from text, or None if it is missing; any other value is left."""
        found = self.take(*keys)
        if found is None or (isinstance(found, (int, str)) and not isinstance(found, bool) and str(found).isdecimal()):
            return None if found is None else int(found)
        self.leave(keys, "is not a whole number")
        return None

    def variables(self) -> list[tuple[Keys, str, Any]]:
        """Return variables in the order of the recipes' charts; the last one of a name counts."""
        lists = (("network", "ncclSettings"), ("workload", "envs"))
        return [(at, str(entry.get("name")), entry) for keys in lists for at, entry in self.items(*keys)]

    def variable(self, name: str) -> str:
        """Return the value of a variable; empty if it has none."""
        found = [entry.get("value") for _, each, entry in self.variables() if each == name]
        return str(found[-1]) if found and found[-1] is not None else ""

    def problem(self, keys: Keys, message: str, hint: str = "") -> Problem:
        """Return a Problem that names a key, with its place."""
        files = [layer for layer in self.values.layers if layer.document]
        whole = files and isinstance(self.peek(*keys), dict) and files[0].holds(keys)
        named = not files or (self.values.sets(keys) and not whole)
        origin = self.values.origin(keys) if named else files[0].origin(keys)
        return Problem(f"{dotted(keys)} {message}", origin.path or self.path, origin.line, origin.column, hint)

    def leave(self, keys: Keys, message: str, hint: str = "") -> None:
        """Record a value that is not carried over."""
        self.left.append(self.problem(keys, message, hint))

    def lack(self, keys: Keys, message: str, hint: str = "") -> None:
        """Record a problem that stops the conversion."""
        self.missing.append(self.problem(keys, message, hint))

    def rest(self) -> Iterator[tuple[Keys, str]]:
        """Yield each value that was not read, as text."""
        for keys, value in _leaves(self.values.data):
            # disabled features are also off in chartgen's charts
            if (
                value not in _EMPTY
                and value is not False
                and not any(keys[: len(taken)] == taken for taken in self._taken)
            ):
                secret = isinstance(value, str) and looks_secret(str(keys[-1]), value)
                yield keys, HIDDEN if secret else json.dumps(value)


def _leaves(node: Any, at: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    pairs: list[tuple[str | int, Any]] = []
    if isinstance(node, dict):
        pairs = list(node.items())
    elif isinstance(node, list):
        pairs = list(enumerate(node))
    for key, value in pairs:
        yield from _leaves(value, (*at, key))
    if not pairs:
        yield at, node
