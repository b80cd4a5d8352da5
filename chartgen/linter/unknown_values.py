"""Templates read values that the chart can have: a misspelled one is null, and `quote` prints nothing for it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from chartgen.composer.origin import Foreign, origin_of
from chartgen.errors import ChartgenError, Problem, is_slip
from chartgen.findings import Finding, Rule
from chartgen.helm.chart import Chart
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.schema_keys import excludes
from chartgen.helm.yaml import load
from chartgen.linter.dependencies import subchart_keys
from chartgen.linter.value_reads import Read, value_reads

if TYPE_CHECKING:
    from chartgen.helm.schema import Schema

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
