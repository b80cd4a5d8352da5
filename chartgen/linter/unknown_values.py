"""Templates read values that the chart can have: a misspelled one is null, and `quote` prints nothing for it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from chartgen.composer.origin import Foreign, origin_of
from chartgen.errors import ChartgenError, Problem, is_slip
from chartgen.findings import Finding, Rule
from chartgen.helm.chart import Chart
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.yaml import load
from chartgen.linter.dependencies import subchart_keys
from chartgen.linter.value_reads import Read, value_reads

if TYPE_CHECKING:
    from chartgen.helm.schema import Schema
    from chartgen.helm.schema_messages import Json

UNKNOWN_VALUES = Rule(
    "values-are-known",
    "A template reads a value that values.schema.json excludes, or whose name is one letter off one in "
    "values.yaml. Such a value is null, and functions such as `quote` print nothing for it. It is a warning if a "
    "template asks for the value, such as with `if`, or if values.yaml alone lacks it.",
    "correct the name of the value, or describe it in values.yaml and its schema",
    "json-schema.org, additionalProperties",
)
# Methods of Helm's type of values, which templates call like keys (helm.sh/helm/v4, pkg/chart/common, Values).
_METHODS = frozenset(("AsMap", "Encode", "PathValue", "Table", "YAML"))
# Shorter names differ in one letter by chance.
_SHORTEST = 4


def unknown_values(chart: Chart) -> Iterator[Finding]:
    """Find values that templates read and the schema excludes, or whose name is one letter off one in values.yaml.

    Values may have any key without a schema that excludes others. Then only a value counts that no template asks for
    and that neither values.yaml nor the README name. A target's fragments may ask for values of another target, so
    there a value that they ask for must be one letter off too.
    """
    free = {"global", *subchart_keys(chart)}
    is_foreign = isinstance(origin_of(chart), Foreign)
    reads = [
        read
        for read in value_reads(chart, is_foreign=is_foreign)
        if read.path.startswith("templates/") and read.keys[0] not in free and not _METHODS.intersection(read.keys)
    ]
    guarded = {read.keys for read in reads if read.guarded}
    schema, values = _schema(chart), _values(chart)
    named = chart.files.get("values.yaml", "") + chart.files.get("README.md", "")
    reported: set[tuple[str, tuple[str, ...]]] = set()
    for read in reads:
        excluded, (lacked, near) = _excluded(schema, read), _misspelled(values, read)
        keys = excluded or lacked
        # fragments serve charts of other launchers too
        is_optional = (not is_foreign and keys[:-1] == ("launchers",)) or any(
            each[: len(keys)] == keys for each in guarded
        )
        if excluded and (not is_optional or lacked or is_foreign):
            message = f"{SCHEMA_FILE} excludes the value {'.'.join(keys)}, so it is always null"
        elif lacked and not is_optional and not re.search(rf"\b{re.escape(keys[-1])}\b", named):
            message = f"values.yaml has no value {'.'.join(keys)}"
        else:
            continue
        hint = f"write {near}" if near else UNKNOWN_VALUES.remedy
        if (read.path, keys) not in reported:
            reported.add((read.path, keys))
            problem = Problem(message, read.path, read.line, hint=hint)
            yield Finding(UNKNOWN_VALUES.id, problem, "error" if excluded and not is_optional else "warning")


def _excluded(schema: Schema, read: Read) -> tuple[str, ...]:
    """Return the first part of the path of a value that the schema excludes; empty if the value is possible."""
    begun = (read.keys[:depth] for depth in range(1, len(read.keys) + 1))
    return next((keys for keys in begun if excludes(schema, keys)), ())


def _misspelled(values: object, read: Read) -> tuple[tuple[str, ...], str]:
    """Return the first part of the path that the defaults lack, and a key with almost that name; empty if none."""
    node = values
    for depth, key in enumerate(read.keys, 1):
        if not isinstance(node, dict):
            break
        if key not in node:
            others = [each for each in node if is_slip(key.lower(), str(each).lower(), _SHORTEST)]
            return (read.keys[:depth], others[0]) if others else ((), "")
        node = node[key]
    return (), ""


def _schema(chart: Chart) -> Schema:
    try:
        schema = json.loads(chart.files.get(SCHEMA_FILE, "{}"))
    except (RecursionError, ValueError):
        return {}  # Helm reports it
    return schema if isinstance(schema, dict) else {}


def _values(chart: Chart) -> object:
    try:
        return load(chart.files.get("values.yaml", ""), "values.yaml", allow_duplicates=True).data
    except ChartgenError:
        return None  # Helm reports it


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
