"""Check the values of a release against its chart, before Helm or a cluster receives them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.composer.origin import Composed, origin_of
from chartgen.errors import ChartgenError, Problem
from chartgen.helm.chart import Chart
from chartgen.helm.schema import SCHEMA_FILE, validate_schema
from chartgen.helm.values import Values, coalesce
from chartgen.helm.yaml import Document, Keys, dotted, load, require_map

SCHEMA = "values-schema"  # the id of findings about values that the schema does not accept
_PLAIN = "leave out the control characters U+007F to U+009F, U+FFFE and U+FFFF"
_KEEP = "leave it out to keep that, or give another value"
# What Helm's toYaml changes into a blank, or cannot write: it returns nothing then, for a whole list or map (4.3.1).
_UNWRITABLE = re.compile("[\x7f-\x9f\ufffe\uffff]")
_SUPERSEDED = ("nemo-2", "nemo2")


def effective_values(chart: Chart, values: Values) -> dict[str, Any]:
    """Return the values that templates receive: the chart's defaults and the user's values, coalesced as in Helm."""
    return coalesce(require_map(_defaults(chart), "values.yaml"), values.data)


def check_values(chart: Chart, values: Values) -> list[Problem]:
    """Validate values against the chart's own schema; clearer than Helm's report, with the user's file and line.

    Args:
        chart: The chart; without a values.schema.json anything is valid.
    """
    text = chart.files.get(SCHEMA_FILE)
    if text is None:
        return []
    wanted = _schema(text)
    data = effective_values(chart, values)
    found = validate_schema(data, wanted, lambda keys: _near(chart, values, keys))
    is_odd = _UNWRITABLE.search(json.dumps(values.data, ensure_ascii=False))
    deleted = list(_deleted(values.data, require_map(_defaults(chart), "values.yaml"), wanted, wanted))
    missing = {f"{'.'.join(keys)} is missing" for keys in deleted}
    return [
        *(_known_elsewhere(problem, data, chart) for problem in found if problem.message not in missing),
        *(
            Problem(f"{'.'.join(keys)}: null deletes the chart's default", *_near(chart, values, keys), hint=_KEEP)
            for keys in deleted
        ),
        *(
            Problem(f"{dotted(keys)}: has a character that Helm cannot write", *_near(chart, values, keys), hint=_PLAIN)
            for keys in (_unwritable(values.data) if is_odd else ())
        ),
    ]


def _unwritable(data: Any, at: Keys = ()) -> Iterator[Keys]:
    """Yield the places of texts, and of maps with keys, that have such characters."""
    if isinstance(data, str) and _UNWRITABLE.search(data):
        yield at
    elif isinstance(data, dict):
        yield from (at for key in data if _UNWRITABLE.search(key))
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from _unwritable(value, (*at, key))


def _known_elsewhere(problem: Problem, data: dict[str, Any], chart: Chart) -> Problem:
    """Return a problem with a better hint, if another target knows the machine, or a launcher has another name now."""
    if problem.message.startswith("launcher must be ") and data.get("launcher") in _SUPERSEDED:
        return problem._replace(hint="NeMo 2 is superseded by Megatron-Bridge: use megatron-bridge")
    machine = data.get("machineType")
    if not problem.message.startswith("machineType must be ") or not isinstance(machine, str):
        return problem
    if not isinstance(origin := origin_of(chart), Composed):
        return problem
    targets = [each.target for each in origin.target.library.machine_types() if each.name == machine]
    if not targets:
        return problem
    return problem._replace(hint=f"{machine} belongs to target {' and '.join(targets)}")


@lru_cache(maxsize=8)
def _schema(text: str) -> dict[str, Any]:
    try:
        wanted = json.loads(text)
    except (ValueError, RecursionError) as error:
        hint = "correct the schema; the values were not checked against it"
        raise ChartgenError(Problem(f"is not JSON: {error}", SCHEMA_FILE, 1, hint=hint)) from None
    return wanted if isinstance(wanted, dict) else {}  # `true` and `false` are schemas too


def _deleted(
    data: dict[str, Any], defaults: dict[str, Any], schema: dict[str, Any], root: dict[str, Any]
) -> Iterator[tuple[str, ...]]:
    """Yield the keys that a null removes although the schema names them: templates require all of these."""
    for key, value in data.items():
        named = _maps(_maps(schema, "properties"), key)
        named = _maps(_maps(root, "definitions"), str(named.get("$ref", "")).rpartition("/")[2]) or named
        default = defaults.get(key)
        if value is None and named and default is not None and "null" not in named.get("type", ""):
            yield (key,)
        elif isinstance(value, dict) and isinstance(default, dict):
            yield from ((key, *below) for below in _deleted(value, default, named, root))


def _maps(node: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a part of a schema; empty if a third-party schema does not have a map there."""
    part = node.get(key)
    return part if isinstance(part, dict) else {}


def place(chart: Chart, values: Values, keys: Sequence[str | int]) -> tuple[Path | str | None, int, int]:
    """Return the place of a value: the user's file and line, or the default in the chart."""
    return values.origin(keys) if values.sets(tuple(keys)) else ("values.yaml", *_defaults(chart).position(tuple(keys)))


def _near(chart: Chart, values: Values, keys: Sequence[str | int]) -> tuple[Path | str | None, int, int]:
    """Return the place of a value, or the place where the user should have written it."""
    origin = values.origin(keys)
    return origin if origin.path else place(chart, values, keys)


def _defaults(chart: Chart) -> Document:
    return _read(chart.files.get("values.yaml", ""))


@lru_cache(maxsize=8)
def _read(text: str) -> Document:
    return load(text, "values.yaml")
