"""Templates read values that the chart can have: a misspelled one is null, and `quote` prints nothing for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from chartgen.composer.origin import Foreign, origin_of
from chartgen.errors import Problem, is_slip
from chartgen.findings import Finding, Rule
from chartgen.helm.chart import Chart
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.linter.dependencies import subchart_keys
from chartgen.linter.documents import schema_of, values_of
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
_MOST_REFERENCES = 20  # from one to the next: a schema may refer to itself


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
    schema, values = schema_of(chart), values_of(chart)
    named = chart.files.get("values.yaml", "") + chart.files.get("README.md", "")
    reported: set[tuple[str, tuple[str, ...]]] = set()
    for read in reads:
        excluded, (lacked, near) = excluded_part(schema, read.keys), _misspelled(values.data if values else None, read)
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


def excluded_part(root: Schema, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the first part of a path of keys that no valid values have; empty if the value is possible.

    Read are the type, keys and references inside the schema. All other keywords, and a broken part, exclude nothing.

    Args:
        root: The schema, of any draft.
        keys: The path, from the root.
    """
    parts: list[Json] = [root]
    for depth, key in enumerate(keys, 1):
        parts = [part for parent in parts for part in _of_key(_referred(parent, root), key)]
        if any(part is False for part in parts):
            return tuple(keys[:depth])
    return ()


def _of_key(schema: Json, key: str) -> list[Json]:
    """Return the schemas of the value of a key."""
    if not isinstance(schema, dict):
        return []
    types = schema.get("type", "object")
    if "object" not in (types if isinstance(types, list) else [types]):
        return [False]
    named, patterns = (schema.get(word) for word in ("properties", "patternProperties"))
    found = [named[key]] if isinstance(named, dict) and key in named else []
    found += [each for name, each in (patterns.items() if isinstance(patterns, dict) else ()) if _fits(name, key)]
    return found or [schema.get("additionalProperties")]


def _fits(pattern: str, key: str) -> bool:
    try:
        return re.search(pattern, key) is not None
    except re.error:  # of Go alone
        return True


def _referred(schema: Json, root: Schema) -> Json:
    """Return the part of the root that `#/definitions/port` refers to; None for another reference, or a circle."""
    for _ in range(_MOST_REFERENCES):
        if not isinstance(schema, dict) or "$ref" not in schema:
            return schema
        reference, schema = schema["$ref"], root  # up to draft-07, its siblings have no effect
        if not isinstance(reference, str) or not re.match(r"#(?:/|$)", reference):
            return None
        for part in unquote(reference[1:]).split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            schema = schema.get(name) if isinstance(schema, dict) else None
    return None
