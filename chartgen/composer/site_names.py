"""The names in a site file: read and replaced with its comments kept."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

Answer = str | int | None  # None leaves the value out


def edit(text: str, change: Callable[[Any], None]) -> str:
    """Return a YAML text after a change of its values; comments, order and quotes stay."""
    from ruamel.yaml import YAML  # keeps comments

    editor = YAML()
    editor.width, editor.preserve_quotes = 4096, True
    editor.indent(mapping=2, sequence=4, offset=2)
    values = editor.load(text) or {}
    change(values)
    out = io.StringIO()
    editor.dump(values, out)
    return out.getvalue()


def replace_names(text: str, ask: Callable[[tuple[str, ...], str | int], Answer]) -> str:
    """Return a site file with other names.

    Args:
        text: The site file.
        ask: Receives the key path and the value of each text and number below the top level, and returns the new
            value; None removes the key, and whatever it leaves empty.
    """
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    def change(values: Any) -> None:
        """Ask for each value, and replace it."""
        for path in list(_paths(values)):
            parents = [values]
            for part in path[:-1]:
                parents.append(parents[-1][part])
            answer = ask(tuple(map(str, path)), parents[-1][path[-1]])
            if answer is not None:
                if answer != parents[-1][path[-1]]:  # an equal one keeps its quotes
                    # Helm takes a plain `on` for a switch
                    parents[-1][path[-1]] = DoubleQuotedScalarString(answer) if isinstance(answer, str) else answer
                continue
            for parent, part in zip(reversed(parents), reversed(path), strict=True):
                del parent[part]
                if parent:
                    break

    return edit(text, change)


def _paths(values: Any, prefix: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each text and number in maps; lists and switches are not names."""
    for key, value in values.items():
        path = (*prefix, key)
        if isinstance(value, dict):
            yield from _paths(value, path)
        elif isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            yield path
