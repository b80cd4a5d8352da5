"""Whether values that are valid for a JSON Schema can have a path of keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from chartgen.helm.schema import Schema
    from chartgen.helm.schema_messages import Json

_DEEPEST = 50  # a schema may refer to itself


def excludes(root: Schema, keys: Sequence[str]) -> bool:
    """Report whether no valid values have something at a path of keys.

    A keyword that this function does not know, a reference to another document and a broken part exclude nothing.

    Args:
        root: The schema, of any draft.
        keys: The path, from the root.
    """
    return _Part(root, {}).excludes(root, tuple(keys), _DEEPEST)


@dataclass
class _Part:
    """The parts of a schema, each asked once for each rest of the path: they may refer to each other in any way."""

    root: Schema
    known: dict[tuple[int, int], bool]

    def excludes(self, schema: Json, keys: tuple[str, ...], depth: int) -> bool:
        if not isinstance(schema, dict) or not depth:
            return schema is False
        place = (id(schema), len(keys))
        if place not in self.known:
            self.known[place] = False  # for a part that refers to itself
            self.known[place] = self._required(schema, keys, depth - 1)
        return self.known[place]

    def _required(self, schema: Schema, keys: tuple[str, ...], depth: int) -> bool:
        if "$ref" in schema:  # up to draft-07, its siblings have no effect
            return self.excludes(_referred(schema["$ref"], self.root), keys, depth)
        every, *either = (
            [self.excludes(branch, keys, depth) for branch in _branches(schema, word)]
            for word in ("allOf", "anyOf", "oneOf")
        )
        if any(every) or any(found and all(found) for found in either):
            return True
        if not keys:
            return False
        types = schema.get("type", "object")
        is_object = "object" in (types if isinstance(types, list) else [types])
        return not is_object or any(self.excludes(each, keys[1:], depth) for each in _of_key(schema, keys[0]))


def _branches(schema: Schema, word: str) -> list[Json]:
    found = schema.get(word)
    return found if isinstance(found, list) else []


def _of_key(schema: Schema, key: str) -> Iterator[Json]:
    """Yield the schemas of the value of a key."""
    named, patterns = (schema.get(word) for word in ("properties", "patternProperties"))
    found = [named[key]] if isinstance(named, dict) and key in named else []
    found += [each for name, each in (patterns.items() if isinstance(patterns, dict) else ()) if _fits(name, key)]
    yield from found or [schema.get("additionalProperties", True)]


def _fits(pattern: str, key: str) -> bool:
    try:
        return re.search(pattern, key) is not None
    except re.error:  # of Go alone
        return True


def _referred(reference: Json, root: Schema) -> Json:
    """Return the part of the schema that a reference such as `#/definitions/port` names; True for any other."""
    if not isinstance(reference, str) or not re.match(r"#(?:/|$)", reference):
        return True
    node: Json = root
    for part in unquote(reference[1:]).split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, dict) or name not in node:
            return True
        node = node[name]
    return node
