"""Schema errors in plain words: what a value must be, what it is, and which name was probably meant."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from chartgen.errors import did_you_mean
from chartgen.helm.set_flags import dotted
from chartgen.masking import masked_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from chartgen.helm.yaml import Keys

# A schema that refers to itself has no end; values are never this deep.
_DEEPEST = 12

# Any JSON value, of a schema or of the values it judges.
Json: TypeAlias = Any

_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a map",
    "null": "null",
}
# Keywords whose failure says that the value is not what is wanted: the wanted thing is described as a whole.
_OF_VALUE = frozenset(
    (
        "type",
        "const",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
    )
)


@dataclass(frozen=True)
class Fault:
    """One error of a schema validator.

    Args:
        keyword: The schema keyword that failed.
        asked: The keyword's value.
        value: The value that failed it.
        schema: The schema that holds the keyword.
        keys: The key path of the value.
        message: The validator's own words.
        depth: For an error inside an alternative, how far below the alternative's own value it is.
        branch: For an error inside an alternative, the number of its branch.
        inner: For alternatives, the errors of all branches.
    """

    keyword: str
    asked: Json
    value: Json
    schema: dict[str, Json]
    keys: Keys
    message: str
    depth: int = 0
    branch: int = 0
    inner: tuple[Fault, ...] = ()


class Told(NamedTuple):
    """One schema error in words.

    Args:
        keys: The key path that it is about.
        message: What is wrong, with the path in it.
        hint: What was probably meant, or empty.
    """

    keys: tuple[str | int, ...]
    message: str
    hint: str = ""


def explain(fault: Fault, root: dict[str, Json]) -> Iterator[Told]:
    """Put one error in words; an alternative (`anyOf`) gives the errors of its nearest branch.

    Args:
        fault: What the validator found.
        root: The whole schema, to find a key that was put in the wrong place.
    """
    if fault.keyword == "additionalProperties":
        yield from _unknown_keys(fault, root)
    elif fault.keyword == "required":
        missing = [key for key in fault.asked if key not in fault.value]
        yield from (Told(fault.keys, f"{dotted([*fault.keys, key])} is missing") for key in missing)
    elif fault.keyword in ("anyOf", "oneOf") and fault.inner:
        yield from _alternatives(fault, root)
    elif fault.keyword == "enum":
        yield _outside(fault)
    elif fault.keyword == "pattern" or (fault.keyword == "not" and "title" in fault.schema):
        yield Told(fault.keys, f"{_name(fault)} is {_given(fault)}, but must be: {_form(fault.schema)}")
    elif fault.keyword in _OF_VALUE:
        yield _misfit(fault, [wanted(fault.schema, root)])
    else:
        yield Told(fault.keys, f"{_name(fault)} {_other(fault)}")


def wanted(schema: dict[str, Json], root: dict[str, Json]) -> str:
    """Say in words what a schema asks of a value: `a whole number of at least 1`."""
    schema = _resolved(schema, root)
    if "const" in schema:
        return _show(schema["const"])
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


def _name(fault: Fault) -> str:
    return dotted(fault.keys) or "the values"


def _outside(fault: Fault) -> Told:
    """Word a value outside its list; the hint leaves the list out, because the message has it."""
    hint = did_you_mean(str(fault.value), [word for word in fault.asked if isinstance(word, str)])
    message = f"{_name(fault)} must be {_choice(fault.asked)}, not {_given(fault)}"
    return Told(fault.keys, message, hint if hint.startswith("did") else "")


def _unknown_keys(fault: Fault, root: dict[str, Json]) -> Iterator[Told]:
    properties = fault.schema.get("properties", {})
    patterns = fault.schema.get("patternProperties", {})
    where = f" in {dotted(fault.keys)}" if fault.keys else ""
    for key in fault.value:
        if key not in properties and not any(re.search(pattern, key) for pattern in patterns):
            yield Told((*fault.keys, key), f"unknown key {json.dumps(key)}{where}", _meant(key, properties, root))


def _meant(key: str, siblings: Iterable[str], root: dict[str, Json]) -> str:
    """Guess the key: a sibling of nearly that name, unless a key elsewhere is nearer; else say what is known here."""
    known = [name for name in siblings if name != "global" or siblings is not root.get("properties")]
    places: dict[str, list[str]] = {}
    for path in dict.fromkeys(_paths(root, root)):
        places.setdefault(path[-1], []).append(dotted(path))
    near = _nearest(key, places, 0.8)
    if near and _likeness(key, near) > _likeness(key, _nearest(key, known, 0.6)):
        return "did you mean " + " or ".join(places[near][:3]) + "?"
    return did_you_mean(key, known)


def _nearest(word: str, known: Iterable[str], cutoff: float) -> str:
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=cutoff)), "")


def _likeness(one: str, other: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, one, other).ratio()


def _paths(schema: Json, root: dict[str, Json], at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if not isinstance(schema, dict) or len(at) > _DEEPEST:
        return
    schema = _resolved(schema, root)
    for name, child in schema.get("properties", {}).items():
        yield (*at, name)
        yield from _paths(child, root, (*at, name))
    for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _paths(branch, root, at)


def _resolved(schema: dict[str, Json], root: dict[str, Json]) -> dict[str, Json]:
    """Follow a reference into the schema's own definitions; draft-07 ignores what stands beside it."""
    for _ in range(_DEEPEST):
        if "$ref" not in schema:
            break
        target: Json = root
        for step in schema["$ref"].removeprefix("#").strip("/").split("/"):
            target = target.get(step, {}) if step and isinstance(target, dict) else target
        schema = target if isinstance(target, dict) else {}  # a part of a list, or `true`
    return schema


def _alternatives(fault: Fault, root: dict[str, Json]) -> Iterator[Told]:
    """Choose the branch that the user meant: the one whose type fits, then the one that got deepest."""
    branches: dict[int, list[Fault]] = {}
    for inner in fault.inner:
        branches.setdefault(inner.branch, []).append(inner)
    fitting = {branch: inner for branch, inner in branches.items() if not any(map(_misses_type, inner))}
    if not fitting or (len(fitting) > 1 and not isinstance(fault.value, (dict, list))):
        yield _misfit(fault, list(dict.fromkeys(wanted(fault.asked[branch], root) for branch in fitting or branches)))
        return
    for inner in max(fitting.values(), key=lambda faults: max(inner.depth for inner in faults)):
        yield from explain(inner, root)


def _misses_type(fault: Fault) -> bool:
    """Report whether an alternative fails because it wants another kind of value altogether."""
    return fault.depth == 0 and fault.keyword in ("type", "const")


def _misfit(fault: Fault, forms: list[str]) -> Told:
    """Say what is wanted; forms that are sentences or addresses read better behind a colon."""
    if any("," in form or ":" in form for form in forms):
        return Told(fault.keys, f"{_name(fault)} is {_given(fault)}, but must be: {' or '.join(forms)}")
    return Told(fault.keys, f"{_name(fault)} must be {' or '.join(forms)}, not {_given(fault)}")


def _form(schema: dict[str, Json]) -> str:
    """Return a text's form in words: the schema's title, since its description says what the value means."""
    return schema.get("title") or f"text that matches {schema['pattern']}"


def _choice(values: Sequence[Json]) -> str:
    shown = [_show(value) for value in values]
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " or " + shown[-1]


def _given(fault: Fault) -> str:
    """Show the value at fault; a secret is masked before it is cut."""
    return _show(masked_value(fault.value, tuple(fault.keys)))


def _show(value: Json) -> str:
    """Show a value as YAML users write it, cut to one short line."""
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + '..."'


def _other(fault: Fault) -> str:
    """Word the keywords that count things, and fall back on the validator's own message."""
    size = len(fault.value) if isinstance(fault.value, (list, dict)) else 0
    sentences = {
        "minItems": f"must have at least {fault.asked} items, not {size}",
        "maxItems": f"must have at most {fault.asked} items, not {size}",
        "minProperties": f"must have at least {fault.asked} keys, not {size}",
        "maxProperties": f"must have at most {fault.asked} keys, not {size}",
        "uniqueItems": "must not have the same item twice",
    }
    told = " ".join(fault.message.split())
    if isinstance(fault.value, str) and (shown := masked_value(fault.value, tuple(fault.keys))) != fault.value:
        told = told.replace(fault.value, shown)
    return sentences.get(fault.keyword, f"is wrong: {told}")
