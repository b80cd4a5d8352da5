"""Schema errors as plain text: the required value, the given value, and the name that was probably meant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from chartgen.errors import did_you_mean
from chartgen.findings import PartProblem
from chartgen.helm.yaml import Keys, dotted
from chartgen.masking import masked_value

# A keyword of our schemas: names of a key in other programs. Validators and editors pass over it.
OTHER_NAMES = "x-otherNames"
# A schema that refers to itself is infinite; values are never this deep.
_DEEPEST = 12
_FEW = 3  # places in one hint

# Any JSON value, of a schema or of the validated values.
Json: TypeAlias = Any
# A ValidationError of jsonschema, whose type hints let each value be unset.
Mismatch: TypeAlias = Any

_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a map",
    "null": "null",
}
# Keywords whose failure means a wrong kind of value: the message describes the required value as a whole.
_OF_VALUE = {"type", "const", "multipleOf", *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")}
_OF_VALUE |= {"minLength", "maxLength"}


def explain_mismatch(error: Mismatch, root: dict[str, Json]) -> Iterator[PartProblem]:
    """Describe one error; an alternative (`anyOf`) yields the errors of its nearest branch.

    Args:
        root: The whole schema, to find a key that was put in the wrong place.
    """
    if error.validator == "additionalProperties":
        yield from _unknown_keys(error, root)
    elif error.validator == "required":
        yield from _missing_keys(error, root)
    elif error.validator in ("anyOf", "oneOf") and error.context:
        yield from _alternatives(error, root)
    elif error.validator == "oneOf" and (keys := _exclusive_keys(error)):
        if isinstance(error.instance, dict):
            yield _problem(error, f"{_name(error)} has {' and '.join(keys)}", "keep one of them")
    elif error.validator == "dependencies":
        yield from _needed_keys(error)
    elif error.validator == "enum":
        yield _outside(error)
    elif error.validator == "pattern" or (error.validator == "not" and "title" in error.schema):
        yield _problem(error, f"{_name(error)} is {_given(error)}, but must be: {_form(error.schema)}")
    elif error.validator in _OF_VALUE:
        yield _misfit(error, [wanted(error.schema, root)])
    else:
        yield _problem(error, f"{_name(error)} {_other(error)}")


def wanted(schema: dict[str, Json], root: dict[str, Json]) -> str:
    """Describe the value that a schema requires: `a whole number of at least 1`."""
    schema = _resolved(schema, root)
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if "enum" in schema:
        return _choice(schema["enum"])
    branches = schema.get("anyOf") or schema.get("oneOf")
    if "type" not in schema and branches:
        return " or ".join(dict.fromkeys(wanted(branch, root) for branch in branches))
    if "pattern" in schema:
        return _form(schema)
    types = schema.get("type", [])
    names = [_TYPES.get(name, name) for name in ([types] if isinstance(types, str) else types)]
    bounds = _bounds(schema)
    return " or ".join(f"{name}{bounds}" if "number" in name else name for name in names) + _length(schema)


def _bounds(schema: dict[str, Json]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    parts = []
    if low is not None and high is not None:
        parts.append(f"from {low} to {high}")
    elif low is not None or high is not None:
        parts.append(f"of at least {low}" if high is None else f"of at most {high}")
    words = {"exclusiveMinimum": "above", "exclusiveMaximum": "below", "multipleOf": "divisible by"}
    parts += [f"{word} {schema[key]}" for key, word in words.items() if key in schema]
    return "".join(f" {part}" for part in parts)


def _length(schema: dict[str, Json]) -> str:
    low, high = schema.get("minLength"), schema.get("maxLength")
    if low == 1 and high is None:
        return " that is not empty"
    if low is None and high is None:
        return ""
    return f" of {low or 0} to {high} characters" if high is not None else f" of at least {low} characters"


def _keys(error: Mismatch) -> Keys:
    return tuple(error.absolute_path)


def _problem(error: Mismatch, message: str, hint: str = "") -> PartProblem:
    return PartProblem(message, hint, _keys(error))


def _name(error: Mismatch) -> str:
    return dotted(_keys(error)) or "the values"


def _outside(error: Mismatch) -> PartProblem:
    """Describe a value outside its list; the hint omits the list, because the message contains it."""
    hint = did_you_mean(str(error.instance), [word for word in error.validator_value if isinstance(word, str)])
    message = f"{_name(error)} must be {_choice(error.validator_value)}, not {_given(error)}"
    return _problem(error, message, hint if hint.startswith("did") else "")


def _missing_keys(error: Mismatch, root: dict[str, Json]) -> Iterator[PartProblem]:
    described = root
    for key in _keys(error):
        others = described.get("items" if isinstance(key, int) else "additionalProperties")
        child = described.get("properties", {}).get(key, others)
        described = _resolved(child, root) if isinstance(child, dict) else {}
    for key in (key for key in error.validator_value if key not in error.instance):
        meaning = described.get("properties", {}).get(key, {}).get("description", "")
        hint = f"add it: {meaning}" if meaning else ""
        yield _problem(error, f"{dotted([*_keys(error), key])} is missing", hint)


def _unknown_keys(error: Mismatch, root: dict[str, Json]) -> Iterator[PartProblem]:
    properties = error.schema.get("properties", {})
    patterns = error.schema.get("patternProperties", {})
    where = f" in {dotted(_keys(error))}" if _keys(error) else ""
    for key in error.instance:
        if key not in properties and not any(re.search(pattern, key) for pattern in patterns):
            yield PartProblem(
                f"unknown key {json.dumps(key)}{where}", _meant(key, properties, root), (*_keys(error), key)
            )


def _meant(key: str, siblings: Iterable[str], root: dict[str, Json]) -> str:
    """Guess the key: a sibling with a similar name, unless one elsewhere is the same or much nearer; else list all."""
    known = [name for name in siblings if name != "global" or siblings is not root.get("properties")]
    places: dict[str, list[str]] = {}
    for path, schema in dict(_paths(root, root)).items():
        if key in schema.get(OTHER_NAMES, ()):
            return f"did you mean {dotted(path)}?"
        places.setdefault(path[-1], []).append(dotted(path))
    near, beside = _nearest(key, places, 0.8), _likeness(key, _nearest(key, known, 0.6))
    if near == key or (beside < 0.8 and near and _likeness(key, near) > beside):
        found = places[near]
        if len(found) > _FEW:
            found = [*dict.fromkeys(re.sub(r"^launchers\.[^.]+", "launchers.NAME", each) for each in sorted(found))]
        return "did you mean " + " or ".join(found[:_FEW]) + "?"
    return did_you_mean(key, known)


def _nearest(word: str, known: Iterable[str], cutoff: float) -> str:
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=cutoff)), "")


def _likeness(one: str, other: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, one, other).ratio()


def _paths(
    schema: Json, root: dict[str, Json], at: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Json]]]:
    if not isinstance(schema, dict) or len(at) > _DEEPEST:
        return
    schema = _resolved(schema, root)
    for name, child in schema.get("properties", {}).items():
        yield (*at, name), child if isinstance(child, dict) else {}
        yield from _paths(child, root, (*at, name))
    for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _paths(branch, root, at)


def _resolved(schema: dict[str, Json], root: dict[str, Json]) -> dict[str, Json]:
    """Follow a reference into the schema's own definitions; draft-07 ignores its siblings."""
    for _ in range(_DEEPEST):
        if "$ref" not in schema:
            break
        target: Json = root
        for step in schema["$ref"].removeprefix("#").strip("/").split("/"):
            target = target.get(step, {}) if step and isinstance(target, dict) else target
        schema = target if isinstance(target, dict) else {}  # a part of a list, or `true`
    return schema


def _alternatives(error: Mismatch, root: dict[str, Json]) -> Iterator[PartProblem]:
    """Choose the branch that the user meant: the one whose type matches, then the deepest match."""
    branches: dict[int, list[Mismatch]] = {}
    for inner in error.context:
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    fitting = {branch: inner for branch, inner in branches.items() if not any(map(_misses_type, inner))}
    if not fitting or (len(fitting) > 1 and not isinstance(error.instance, (dict, list))):
        yield _misfit(
            error, list(dict.fromkeys(wanted(error.validator_value[branch], root) for branch in fitting or branches))
        )
        return
    for inner in max(fitting.values(), key=lambda errors: max(len(inner.relative_path) for inner in errors)):
        yield from explain_mismatch(inner, root)


def _exclusive_keys(error: Mismatch) -> list[str]:
    """Return the keys of which only one may be present; nothing if the alternatives are others."""
    if any(branch.keys() != {"required"} for branch in error.validator_value if isinstance(branch, dict)):
        return []
    return [key for branch in error.validator_value for key in branch["required"]]


def _needed_keys(error: Mismatch) -> Iterator[PartProblem]:
    for key, others in error.validator_value.items():
        lacking = [name for name in others if key in error.instance and name not in error.instance]
        yield from (_problem(error, f"{dotted([*_keys(error), key])} needs {name}") for name in lacking)


def _misses_type(error: Mismatch) -> bool:
    """Report whether an alternative fails because it requires another type of value."""
    return not error.relative_path and error.validator in ("type", "const")


def _misfit(error: Mismatch, forms: list[str]) -> PartProblem:
    """Describe the required value; forms that are sentences or addresses follow a colon."""
    quoted = error.validator_value == "string" and isinstance(error.instance, bool | int | float)
    hint = "put it in quotes" if quoted else ""
    if any("," in form or ":" in form for form in forms):
        return _problem(error, f"{_name(error)} is {_given(error)}, but must be: {' or '.join(forms)}", hint)
    return _problem(error, f"{_name(error)} must be {' or '.join(forms)}, not {_given(error)}", hint)


def _form(schema: dict[str, Json]) -> str:
    """Describe a text's form: by the schema's title, since its description explains the value's meaning."""
    return schema.get("title") or f"text that matches {schema['pattern']}"


def _choice(values: Sequence[Json]) -> str:
    shown = [_show(value) for value in values]
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " or " + shown[-1]


def _given(error: Mismatch) -> str:
    """Return the faulty value for display; mask a secret before cutting it."""
    return _show(masked_value(error.instance, _keys(error)))


def _show(value: Json) -> str:
    """Format a value as YAML, cut to one short line."""
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + '..."'


def _other(error: Mismatch) -> str:
    """Describe the failure of a counting keyword; fall back on the validator's message."""
    for least, bound in (("min", "at least"), ("max", "at most")):
        if error.validator in (f"{least}Items", f"{least}Properties"):
            what = "items" if error.validator.endswith("Items") else "keys"
            return f"must have {bound} {error.validator_value} {what}, not {len(error.instance)}"
    if error.validator == "uniqueItems":
        return "must not have the same item twice"
    message = " ".join(error.message.split())
    if isinstance(error.instance, str) and (shown := masked_value(error.instance, _keys(error))) != error.instance:
        message = message.replace(error.instance, shown)
    return f"is wrong: {message}"
