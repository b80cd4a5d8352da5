"""The values.schema.json of a chart: merge and close the common, the fragments' and the launchers' schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from chartgen.composer.definition import file_in, has_file, is_builtin, source_text
from chartgen.composer.library import BUILTIN
from chartgen.composer.policies import values_of
from chartgen.composer.target import Target
from chartgen.errors import ChartgenError, Problem, did_you_mean
from chartgen.helm.schema import SCHEMA_FILE, check_sound, closed, merge_schemas
from chartgen.helm.yaml import load_file, type_name

# One encoder for a chart's hundreds of values: json.dumps creates one for each call.
ENCODE = json.JSONEncoder(ensure_ascii=False).encode
LAUNCHERS = BUILTIN / "launchers"  # the values and the schema of all launchers
_WIDTH = 157  # of a line of a schema, without the comma and brackets that may follow
OF_RUNS = "Values of the launchers of the runs; of these, only `resources` counts here"
_ALL = "By launcher; the values of those that this chart lacks have no effect"
_REFERENCE = re.compile(r'"#/definitions/([^"/]+)"')


class ChartSchema:
    """The schema of a chart's values."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @cached_property
    def text(self) -> str:
        """Return it for people."""
        return schema_text(self.data)


def chart_schema(target: Target, folders: Iterable[Path]) -> ChartSchema:
    """Merge the schema of a target's charts; values.yaml beside it has the meaning of each key.

    Args:
        target: The target; only its launchers and machine types are allowed.
        folders: The folders that may contain a schema, the common one first.

    Raises:
        ChartgenError: An invalid schema, or two that contradict each other about one value.
    """
    paths = [file_in(folder, SCHEMA_FILE) for folder in folders if has_file(folder, SCHEMA_FILE)]
    parts = [(str(path), _sound(path)) for path in paths]
    parts += [(str(policy.path), values_of(policy)[1]) for policy in target.policies]
    _check_schemes(parts)
    _check_sub_paths(target, parts)
    common = read_schema(LAUNCHERS / SCHEMA_FILE)
    definitions = {_definition(key): value for key, value in common.items()}
    # a file is JSON already: to write it again takes a twentieth of a chart's time
    written = [f"[{ENCODE(str(path))},{source_text(path)}]" for path in paths]
    written += map(ENCODE, [*parts[len(paths) :], (str(LAUNCHERS / SCHEMA_FILE), {"definitions": definitions})])
    for launcher in target.launchers:
        own = file_in(launcher.path, SCHEMA_FILE)
        text = source_text(own) if has_file(launcher.path, SCHEMA_FILE) else "{}"
        written.append(_of_launcher(own, launcher.name, text, tuple(common)))
    # a site file or preset of the target is for all its charts
    others = {launcher.name: _left_out(launcher.name, target) for launcher in target.left_out}
    left_out = _nested("launchers", {"type": "object", "properties": others, "description": _ALL})
    enums = {"launcher": [launcher.name for launcher in target.launchers], "machineType": list(target.machines)}
    chosen = {"properties": {key: {"enum": names} for key, names in enums.items()}}
    written += [ENCODE((str(target.path), part)) for part in (left_out, chosen)]
    return _merged(f"[{','.join(written)}]", ENCODE(_way_to_others(target)))


def _definition(key: str) -> str:
    return f"launcher{key.capitalize()}"


@lru_cache(maxsize=256)
def _of_launcher(path: Path, name: str, text: str, shared: Sequence[str]) -> str:
    """Return the part of a launcher's values as JSON; earlier, the text was the map of their schemas."""
    schema = _parse(text, path)
    schema = schema if isinstance(schema.get("properties"), dict) else {"properties": schema}
    common = {key: {"$ref": f"#/definitions/{_definition(key)}"} for key in shared}
    schema = {"type": "object", **schema, "properties": common | schema["properties"]}
    return ENCODE((str(path), _nested("launchers", name, schema)))


@lru_cache(maxsize=16)
def _merged(parts: str, way: str) -> ChartSchema:
    """Merge schemas, given as JSON: those of a target's run charts and setup chart are the same."""
    schema = closed(merge_schemas(json.loads(parts)))
    return ChartSchema(with_used_definitions({**schema, **({} if "if" in schema else json.loads(way))}))


def setup_schema(
    schema: dict[str, Any], read: Mapping[str, Collection[str]], launchers: Sequence[str]
) -> dict[str, Any]:
    """Return the schema of a setup chart: of the values that its templates read; it accepts the others of its runs.

    Args:
        schema: The schema of its chart of runs.
        read: The top-level values that the setup chart has, with the keys below; an empty key is all of them.
        launchers: The launchers of all runs; only their `resources` count here.
    """
    counted = {"resources": {"$ref": "#/definitions/launcherResources"}}
    own = {"type": "object", "properties": counted, "additionalProperties": True}
    by_name = {name: {"$ref": "#/definitions/launcher"} for name in launchers}
    properties = {
        **{key: _read_part(value, read.get(key, ())) for key, value in schema["properties"].items() if key != "global"},
        "global": schema["properties"]["global"],
        "launcher": {**schema["properties"]["launcher"], "enum": list(launchers)},
        "launchers": {"type": "object", "properties": by_name, "additionalProperties": False, "description": OF_RUNS},
    }
    found = {key: value for key, value in schema.items() if key not in ("if", "then")}
    definitions = {**schema["definitions"], "launcher": own}
    return with_used_definitions({**found, "definitions": definitions, "properties": properties})


def _read_part(schema: dict[str, Any], below: Collection[str]) -> dict[str, Any]:
    if "" in below or not below or "properties" not in schema:
        return schema if below else {}
    return {
        **schema,
        "properties": {key: value if key in below else {} for key, value in schema["properties"].items()},
    }


def with_used_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Leave out the definitions that nothing refers to."""
    definitions = schema["definitions"]
    others = json.dumps({key: value for key, value in schema.items() if key != "definitions"})
    used: set[str] = set()
    while new := set(_REFERENCE.findall(others)) - used:
        used |= new
        others = json.dumps([definitions[name] for name in new])
    return {**schema, "definitions": {name: value for name, value in definitions.items() if name in used}}


def _way_to_others(target: Target) -> dict[str, Any]:
    """Return what refuses launchers left out of the chart; Helm quotes a constant, so this one is the message."""
    others = [launcher.name for launcher in target.fitting if launcher in target.left_out]
    way = f"one of this chart: `chartgen build {target.name} --launchers NAME` makes a chart with another"
    return {"if": _nested("launcher", {"enum": others}), "then": _nested("launcher", {"const": way})} if others else {}


def _left_out(name: str, target: Target) -> dict[str, Any]:
    """Return the schema of a launcher that the chart lacks: any values, but no image that others would take from it."""
    users = [each.name for each in target.every_launcher if each.same_as == name and each not in target.left_out]
    if not users:
        return {"type": "object"}
    where = " and ".join(f"launchers.{user}.image" for user in users)
    image = {"const": f"set at {where}: this chart lacks {name}"}
    return {"type": "object", "properties": {"image": image}, "additionalProperties": True}


def _check_schemes(parts: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Reject a storage scheme that is not an alternative: it would exclude the schemes of all other fragments."""
    for path, schema in parts:
        address = schema.get("definitions", {}).get("store", {}).get("properties", {}).get("from", {})
        if address.keys() - {"anyOf", "type", "not", "title"}:
            message = "definitions.store.properties.from excludes the storage schemes of other fragments"
            hint = 'write {"anyOf": [{"pattern": ..., "title": ...}]}, which adds one'
            raise ChartgenError(Problem(message, path, hint=hint))


def _check_sub_paths(target: Target, parts: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Reject a scheme of `subPaths` that no address has: the paths of the scheme that is meant would be ignored."""
    addresses = [
        schema.get("definitions", {}).get("store", {}).get("properties", {}).get("from") for _, schema in parts
    ]
    text = json.dumps(addresses)
    known = set(re.findall(r"[a-z][a-z0-9+.-]*(?=://)", text))
    for fragment in target.fragments:
        for index, scheme in enumerate(fragment.sub_paths):
            if not re.search(rf"\b{re.escape(scheme)}\b", text):  # a pattern may be `^(one|two)://`
                place = load_file(fragment.path / "fragment.yaml")
                message = f"no storage address begins with {scheme}://"
                raise ChartgenError(place.problem(message, ("subPaths", index), did_you_mean(scheme, known)))


def schema_text(schema: dict[str, Any]) -> str:
    """Return a schema as text for people: each part on a line if it fits, with what it contains below it if not."""
    return _SchemaLayout().text(schema, 0, 0)


class _SchemaLayout:
    """Lays out a schema; each part is encoded once, and not again for all that contain it."""

    def __init__(self) -> None:
        self._encoded: dict[int, str] = {}

    def text(self, node: Any, indent: int, column: int) -> str:
        """Return a part that begins at a column of a line with an indent."""
        if not isinstance(node, (dict, list)) or column + len(self.encode(node)) <= _WIDTH:
            return self.encode(node)
        keys = [f"{ENCODE(key)}: " for key in node] if isinstance(node, dict) else [""] * len(node)
        parts = list(zip(keys, node.values() if isinstance(node, dict) else node, strict=True))
        opening, closing = "{}" if isinstance(node, dict) else "[]"
        pad = "\n" + " " * (indent + 2)
        if all(isinstance(part, dict) for _, part in parts):
            return opening + pad + self._rows(parts, indent + 2) + pad[:-2] + closing
        return opening + self._filled(parts, indent, column + 1) + closing

    def encode(self, node: Any) -> str:
        """Return a part on one line."""
        if (text := self._encoded.get(id(node))) is None:
            text = self._encoded[id(node)] = ENCODE(node)
        return text

    def _rows(self, parts: Iterable[tuple[str, Any]], indent: int) -> str:
        """Join maps in lines, as many as fit; one that needs more than a line begins one, and ends its last one."""
        rows: list[str] = []
        room = 0
        for key, part in parts:
            text = key + self.text(part, indent, indent + len(key))
            room -= len(text) + 2
            if room >= 0:
                rows[-1] += f", {text}"
            else:
                rows.append(text)
                room = 0 if "\n" in text else _WIDTH - indent - len(text)
        return f",\n{' ' * indent}".join(rows)

    def _filled(self, parts: Iterable[tuple[str, Any]], indent: int, column: int) -> str:
        """Join parts in lines that are as long as they may be; those that need lines of their own come last."""
        text = ""
        for key, part in sorted(parts, key=lambda each: each[0] != "" and self._is_long(each[0], each[1], indent)):
            begin = f", {key}" if text else key
            needed = 1 if self._is_long(key, part, indent) else len(self.encode(part))
            if text and column + len(begin) + needed > _WIDTH:
                begin, column = f",\n{' ' * (indent + 2)}{key}", 0
            added = begin + self.text(part, indent, column + len(begin))
            text += added
            column = len(added.rpartition("\n")[2]) + (0 if "\n" in added else column)
        return text

    def _is_long(self, key: str, part: Any, indent: int) -> bool:
        """Report whether a map or list needs more than a line."""
        return isinstance(part, (dict, list)) and indent + 2 + len(key) + len(self.encode(part)) > _WIDTH


def read_schema(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file; raise ChartgenError for anything else."""
    return _parse(source_text(path), path)


def _nested(*keys_and_schema: Any) -> dict[str, Any]:
    *keys, schema = keys_and_schema
    for key in reversed(keys):
        schema = {"properties": {key: schema}}
    nested: dict[str, Any] = schema
    return nested


def _sound(path: Path) -> dict[str, Any]:
    """Read a schema, and check a user's; chartgen's tests check its own."""
    schema = read_schema(path)
    if not is_builtin(path) and (faults := check_sound(schema)):
        raise ChartgenError(Problem(fault, path) for fault in faults)
    return schema


@lru_cache(maxsize=256)
def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ChartgenError(Problem(f"invalid JSON: {error.msg}", path, error.lineno, error.colno)) from None
    except RecursionError:
        raise ChartgenError(Problem("is nested too deeply", path)) from None
    except ValueError:
        raise ChartgenError(Problem("has a number of thousands of digits", path)) from None
    if not isinstance(data, dict):
        raise ChartgenError(Problem(f"must be an object, not {type_name(data)}", path, 1, 1))
    return data
