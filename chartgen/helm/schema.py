"""JSON Schemas of values: merge fragments, close them, and report each problem of the values in one readable line.

The schemas are draft-07, because every Helm from 3.18 on validates that draft in the same way.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache, reduce
from operator import getitem
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from chartgen.errors import ChartgenError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from jsonschema import Draft7Validator, ValidationError

    from chartgen.helm.schema_messages import Json

Schema: TypeAlias = "dict[str, Json]"
Locate: TypeAlias = "Callable[[Sequence[str | int]], tuple[Path | str | None, int, int]]"

SCHEMA_FILE = "values.schema.json"  # its name in a chart, a fragment and a launcher

# Applicators whose subschemas apply to the same object as their parent: closing one would forbid the parent's keys.
_SAME_OBJECT = ("if", "then", "else", "not", "allOf", "dependencies")
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf")
_MAPS_OF_SCHEMAS = ("properties", "patternProperties", "definitions")
_SCHEMAS = ("items", "additionalProperties", "contains", "propertyNames")

# Syntax that only one of Python's `re` and Go's RE2 supports, or that they read differently.
_UNPORTABLE = {
    "look-around": r"\(\?(?:[=!]|<[=!])",
    "an atomic group or a conditional": r"\(\?(?:>|\()",
    "a back-reference": r"\\[1-9]|\(\?P[=>]",
    "a possessive quantifier": r"[*+?}]\+",
    "an escape that only one engine knows": r"\\(?:[pPQECzZGXRKNhH]|x\{)",
    "a POSIX class": r"\[\[:",
    "an inline flag": r"\(\?[a-zA-Z-]+[:)]",
}
_RE2_MAX_REPEAT = 1000


def merge_schemas(parts: Sequence[tuple[str, Schema]]) -> Schema:
    """Merge schema fragments: maps merge, lists join in order without duplicates, equal scalars collapse.

    Args:
        parts: Each fragment's source (its path, for messages) and content; items of the first come first in lists.

    Raises:
        ChartgenError: Two fragments contradict each other; every conflict is reported with both sources.
    """
    merger = _Merger()
    merged: Schema = {}
    for source, schema in parts:
        merged = merger.merge(merged, schema, source, ())
    if merger.problems:
        raise ChartgenError(merger.problems)
    return merged


def closed(schema: Schema) -> Schema:
    """Return a copy in which every object that lists its properties rejects others, unless it allows them explicitly.

    The root allows `global`, which Helm puts into the values of subcharts.
    """
    root = cast("Schema", _close(schema))
    if "properties" in root:
        root["properties"] = {"global": {"type": "object"}, **root["properties"]}
    return root


def validate_schema(data: Json, schema: Schema, locate: Locate) -> list[Problem]:
    """Validate values and describe each problem in one line.

    Args:
        data: The chart's defaults with the values over them, as `values.coalesce` gives.
        schema: The chart's values.schema.json. A `$ref` to another document is not fetched.
        locate: Returns file, line and column of a key path.

    Returns:
        All problems, sorted by place; empty when the values are valid.

    Raises:
        ChartgenError: The schema is not sound.
    """
    with suppress(Exception):  # the library judges and explains what is not simple
        if fits(data, schema, schema):
            return []
    from referencing import Registry

    try:
        errors = [*_validator_class()(schema, registry=Registry()).iter_errors(data)]
        if not errors:
            return []
        from chartgen.helm.schema_messages import explain_mismatch

        complaints = [complaint for error in errors for complaint in explain_mismatch(error, schema)]
    except Exception as error:  # noqa: BLE001 - a third-party schema can break the validator in many ways
        raise ChartgenError(_unsound(schema, error)) from None
    problems = {Problem(complaint.message, *locate(complaint.at), complaint.hint) for complaint in complaints}
    return sorted(problems, key=lambda p: (str(p.path or ""), p.line, p.column, p.message))


def _unsound(schema: Json, error: Exception) -> list[Problem]:
    """Return the reason why the validator failed: the metaschema's errors, or else the validator's exception."""
    found = _metaschema_errors(schema) or [f"{type(error).__name__}: {error}"]
    hint = "correct the schema; the values were not checked against it"
    return [Problem(f"is not a sound JSON Schema: {each[:300]}", SCHEMA_FILE, 1, hint=hint) for each in found]


def _metaschema_errors(schema: Json) -> list[str]:
    from jsonschema import Draft7Validator

    errors = Draft7Validator(Draft7Validator.META_SCHEMA).iter_errors(schema)
    return sorted(f"{'.'.join(map(str, error.absolute_path)) or 'it'}: {error.message}" for error in errors)


def check_sound(schema: Schema) -> list[str]:
    """Return the faults of a schema; empty when it is sound draft-07 that Python and Go read alike."""
    return _metaschema_errors(schema) or check_patterns(schema)


def check_patterns(schema: Schema) -> list[str]:
    """Return the patterns of a schema that Python and Go's RE2 read differently; tests keep this empty."""
    findings = []
    for path, pattern in _patterns(schema, "#"):
        reasons = [what for what, regex in _UNPORTABLE.items() if re.search(regex, pattern)]
        if any(int(number) > _RE2_MAX_REPEAT for number in re.findall(r"[{,](\d+)", pattern)):
            reasons.append(f"more than {_RE2_MAX_REPEAT} repeats")
        reasons += [] if reasons else _python_complaints(pattern)
        findings += [f"{path}: {pattern!r} uses {reason}" for reason in reasons]
    return findings


def _python_complaints(pattern: str) -> list[str]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            re.compile(pattern)
        except (re.error, FutureWarning) as error:
            return [f"what Python does not like: {error}"]
    return []


class _Merger:
    """Merges maps and records which source set each scalar first, to name it in a conflict."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._first: dict[tuple[str, ...], str] = {}

    def merge(self, base: Schema, over: Schema, source: str, at: tuple[str, ...]) -> Schema:
        """Return a schema with those of another added; note what contradicts."""
        merged = dict(base)
        for key, value in over.items():
            place = (*at, key)
            merged[key] = self._one(merged[key], value, source, place) if key in merged else value
            self._first.setdefault(place, source)
            if key not in base and isinstance(value, dict):
                merged[key] = self.merge({}, value, source, place)
        return merged

    def _one(self, base: Json, over: Json, source: str, place: tuple[str, ...]) -> Json:
        if isinstance(base, dict) and isinstance(over, dict):
            return self.merge(base, over, source, place)
        if isinstance(base, list) and isinstance(over, list):
            return [*base, *(item for item in over if item not in base)]
        if type(base) is not type(over) or base != over:
            first = self._first[place]
            self.problems.append(
                Problem(f"{'.'.join(place)} is {over!r} here but {base!r} in {first}", source, hint="make them equal")
            )
        return base


def _close(schema: Json, *, same_object: bool = False) -> Json:
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    for key, value in schema.items():
        inside = same_object or key in _SAME_OBJECT
        if key in _LISTS_OF_SCHEMAS or (key == "items" and isinstance(value, list)):
            result[key] = [_close(branch, same_object=inside or _is_partial(key, branch)) for branch in value]
        elif key in _MAPS_OF_SCHEMAS:
            result[key] = {name: _close(child) for name, child in value.items()}
        elif key in _SCHEMAS or key in _SAME_OBJECT:
            result[key] = _close(value, same_object=key in _SAME_OBJECT)
    if "properties" in schema and not same_object:
        result.setdefault("additionalProperties", False)
    return result


def _is_partial(key: str, branch: Json) -> bool:
    """Report whether an alternative only adds a condition to its parent and does not describe a whole object."""
    return key in ("anyOf", "oneOf") and isinstance(branch, dict) and branch.get("type") != "object"


def _patterns(schema: Json, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(schema, list):
        for index, item in enumerate(schema):
            yield from _patterns(item, f"{path}/{index}")
    if not isinstance(schema, dict):
        return
    if isinstance(pattern := schema.get("pattern"), str):
        yield f"{path}/pattern", pattern
    names = schema.get("patternProperties")
    yield from ((f"{path}/patternProperties", name) for name in (names if isinstance(names, dict) else ()))
    for key, value in schema.items():
        yield from _patterns(value, f"{path}/{key}")


@lru_cache(maxsize=1)
def _validator_class() -> type[Draft7Validator]:
    """Return the draft-07 validator with Go's reading of patterns, as Helm applies it."""
    from jsonschema import Draft7Validator, ValidationError
    from jsonschema.validators import extend

    def pattern(_validator: Json, regex: str, instance: Json, _schema: Json) -> Iterator[ValidationError]:
        if isinstance(instance, str) and not _compiled(regex).search(instance):
            yield ValidationError(f"{instance!r} does not match {regex!r}")

    extended = extend(Draft7Validator, {"pattern": pattern})  # type: ignore[no-untyped-call]
    return cast("type[Draft7Validator]", extended)


@lru_cache(maxsize=512)
def _compiled(regex: str) -> re.Pattern[str]:
    r"""Compile as RE2 reads it: `$` matches only the end of the text, `\d`, `\s` and `\w` match ASCII."""
    portable = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", lambda m: r"\Z" if m[0] == "$" else m[0], regex)
    return re.compile(portable, re.ASCII)


def fits(data: Json, schema: Json, root: Schema) -> bool:
    """Report whether data fits a draft-07 schema, as jsonschema does, whose import takes longer than a check.

    Raises:
        LookupError: A keyword is not in `_FITS`, or compares lists or maps; other errors: the schema is not sound.
    """

    def fit(data: Json, schema: Json) -> bool:
        if isinstance(schema, bool):
            return schema
        if "$ref" in schema:
            start, *keys = schema["$ref"].split("/")
            return fit(data, reduce(getitem, keys, {"#": root}[start]))
        for keyword, wanted in schema.items():
            types, judge = _FITS[keyword]
            judged = isinstance(data, types) and not (types is _NUMBER and isinstance(data, bool))
            if judged and not judge(data, wanted, schema, fit):
                return False
        return True

    return fit(data, schema)


def _is(data: Json, name: str | list[str]) -> bool:
    if isinstance(name, list):
        return any(_is(data, each) for each in name)
    if isinstance(data, bool):
        return name == "boolean"
    return isinstance(data, _TYPES[name]) or (name == "integer" and isinstance(data, float) and data.is_integer())


def _among(data: Json, values: Sequence[Json]) -> bool:
    if isinstance(data, (list, dict)) and any(isinstance(each, (list, dict)) for each in values):
        raise LookupError  # whether they are equal is left to the library
    return any(data == each and isinstance(data, bool) == isinstance(each, bool) for each in values)


_NUMBER = (int, float)
_TYPES: dict[str, Any] = {"string": str, "boolean": bool, "integer": int, "number": _NUMBER}
_TYPES |= {"array": list, "object": dict, "null": type(None)}
_LARGEST = {"maxLength": str, "maxItems": list, "maxProperties": dict}
_NOTES = ("$schema", "title", "description", "default", "examples", "definitions", "then", "else", "x-otherNames")
# Keyword -> the type of data that it judges; how, from the data, its value, the schema around it, and `fits` for a part
_FITS: dict[str, tuple[Any, Callable[..., bool]]] = {
    **dict.fromkeys(_NOTES, ((), bool)),
    "type": (object, lambda data, of, *_: _is(data, of)),
    "enum": (object, lambda data, values, *_: _among(data, values)),
    "const": (object, lambda data, value, *_: _among(data, [value])),
    "anyOf": (object, lambda data, below, _, fit: any(fit(data, each) for each in below)),
    "oneOf": (object, lambda data, below, _, fit: sum(fit(data, each) for each in below) == 1),
    "allOf": (object, lambda data, below, _, fit: all(fit(data, each) for each in below)),
    "not": (object, lambda data, below, _, fit: not fit(data, below)),
    "if": (object, lambda data, below, at, fit: fit(data, at.get("then" if fit(data, below) else "else", True))),
    "pattern": (str, lambda data, regex, *_: bool(_compiled(regex).search(data))),
    **{name: (of, lambda data, least, *_: len(data) >= least) for name, of in (("minLength", str), ("minItems", list))},
    **{name: (of, lambda data, most, *_: len(data) <= most) for name, of in _LARGEST.items()},
    "minimum": (_NUMBER, lambda data, least, *_: data >= least),
    "maximum": (_NUMBER, lambda data, most, *_: data <= most),
    "exclusiveMinimum": (_NUMBER, lambda data, least, *_: data > least),
    "uniqueItems": (list, lambda data, on, *_: not (on and any(_among(data[n], data[:n]) for n in range(len(data))))),
    "items": (list, lambda data, below, _, fit: all(fit(each, below) for each in data)),
    "required": (dict, lambda data, keys, *_: all(key in data for key in keys)),
    # a list of keys; `+` refuses a schema
    "dependencies": (
        dict,
        lambda data, needs, *_: all(key in data for each in needs if each in data for key in needs[each] + []),
    ),
    "properties": (dict, lambda data, below, _, fit: all(fit(data[key], below[key]) for key in below if key in data)),
    "propertyNames": (dict, lambda data, below, _, fit: all(fit(key, below) for key in data)),
    "additionalProperties": (
        dict,
        lambda data, below, at, fit: all(fit(data[key], below) for key in data if key not in at.get("properties", ())),
    ),
}
