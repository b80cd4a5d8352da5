"""Values as Helm layers them, each with its file and line or its flag."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from chartgen.errors import ChartgenError, Problem, UsageError
from chartgen.helm.yaml import Document, Keys, Plain, json_text, load_documents, load_file, read_text, require_map

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from chartgen.helm.set_flags import Flag


class Origin(NamedTuple):
    """Where a value came from: a file with its 1-based line and column, or a flag with zeros."""

    path: Path | str | None
    line: int = 0
    column: int = 0


class Layer(NamedTuple):
    """One values file or flag, with which to find the origin of a value."""

    source: Path | str  # the file, or the flag as typed
    document: Document | None = None  # the file's content; None for a flag
    assigned: tuple[Keys, ...] = ()  # the key paths that a flag sets

    def has_keys(self, keys: Keys) -> bool:
        """Report whether this layer sets the key path, or a path inside or around it."""
        if self.document is None:
            return any(keys[: len(path)] == path or path[: len(keys)] == keys for path in self.assigned)
        return _exists(self.document.data, keys)

    def origin(self, keys: Keys) -> Origin:
        """Return the place of a key path that this layer sets."""
        line, column = self.document.position(keys) if self.document else (0, 0)
        return Origin(self.source, line, column)


@dataclass(frozen=True)
class Values:
    """The user's values, merged.

    Args:
        data: The values to pass to Helm; a null stays, because in Helm it deletes the chart's default.
        layers: The files and flags, lowest first.
        presets: How many of them, from the first on, are of presets.
    """

    data: dict[str, Plain]
    layers: tuple[Layer, ...] = ()
    presets: int = 0

    def sets(self, keys: Keys) -> bool:
        """Report whether a file or flag sets the value at a key path."""
        return any(layer.has_keys(keys) for layer in self.layers)

    def depth(self, keys: Keys) -> int:
        """Return the number, from 1, of the last layer that sets a key path; 0 when none does."""
        return max((number for number, layer in enumerate(self.layers, 1) if layer.has_keys(keys)), default=0)

    def origin(self, keys: Sequence[str | int] = ()) -> Origin:
        """Return the origin of the value at a key path; its nearest parent's origin when nothing sets it."""
        for depth in range(len(keys), -1, -1):
            path = tuple(keys[:depth])
            for layer in reversed(self.layers):
                if layer.has_keys(path):
                    return layer.origin(path)
        return Origin(None)


def load_values(
    files: Iterable[Path] = (),
    *,
    documents: int | None = None,
    set_json: Iterable[str] = (),
    set_values: Iterable[str] = (),
    set_strings: Iterable[str] = (),
    set_files: Iterable[str] = (),
) -> Values:
    """Layer values files and flags exactly as Helm does: maps merge, lists replace, a null stays to delete a default.

    As in Helm, the kinds of flags apply in a fixed order, that of the arguments below, not in the order of the command
    line.

    Args:
        files: YAML files, lowest layer first.
        documents: The number of YAML documents that count in each file; None to refuse a second one, which Helm 3
            ignores and Helm 4 merges (3.22.0, 4.3.1).
        set_json: Arguments of `--set-json`: `a.b={"c": 1}`, or a whole JSON object.
        set_values: Arguments of `--set`: `a.b=c,d={1,2},e[0].f=null`.
        set_strings: Arguments of `--set-string`, where every value is text.
        set_files: Arguments of `--set-file`, where every value is the text of a file.

    Raises:
        UsageError: A file does not exist.
        ChartgenError: Every file that is unreadable or not a map, or the first malformed flag.
    """
    layers, data = _load_files(files, documents)
    flags: list[tuple[Flag, Iterable[str]]] = [
        ("--set-json", set_json),
        ("--set", set_values),
        ("--set-string", set_strings),
        ("--set-file", set_files),
    ]
    for flag, texts in flags:
        for text in texts:
            data, layer = _apply_flag(data, flag, text)
            layers.append(layer)
    return Values(data, tuple(layers))


def override(values: Values, flag: Flag, text: str) -> Values:
    """Return values with one more flag of Helm above all layers."""
    data, layer = _apply_flag(values.data, flag, text)
    return replace(values, data=data, layers=(*values.layers, layer))


def merge_values(base: dict[str, Plain], over: dict[str, Plain]) -> dict[str, Plain]:
    """Merge one map over another as Helm merges values files: maps merge, everything else is replaced, nulls stay."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = merge_values(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def coalesce(defaults: dict[str, Plain], values: dict[str, Plain]) -> dict[str, Plain]:
    """Merge values over a chart's defaults as Helm does before it validates and renders.

    A null in the values deletes the default; a null among the defaults counts as absent (Helm 4, and the source of
    pkg/chart/common/util/coalesce.go at v4.3.1).
    """
    merged = {key: value for key, value in values.items() if value is not None or key not in defaults}
    for key, default in defaults.items():
        if key not in values and default is not None:
            merged[key] = _without_nulls(default)
        elif isinstance(value := merged.get(key), dict) and isinstance(default, dict):
            merged[key] = _coalesce_inner(default, value)
    return merged


def to_json(data: dict[str, Plain]) -> str:
    """Write values as the JSON document that Helm reads on stdin; Helm reads it as YAML, so it is valid in both.

    Raises:
        ChartgenError: A value is infinite or NaN, which neither JSON nor Helm supports.
    """
    try:
        text = json_text(data, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:
        raise ChartgenError("the values contain text that is not UTF-8") from None
    except ValueError:
        raise ChartgenError("the values contain .inf or .nan, which Helm refuses") from None
    return text


def _load_files(files: Iterable[Path], documents: int | None) -> tuple[list[Layer], dict[str, Plain]]:
    problems: list[Problem] = []
    kind = ChartgenError
    layers: list[Layer] = []
    data: dict[str, Plain] = {}
    for path in files:
        try:
            for document in [load_file(path)] if documents is None else load_documents(path)[:documents]:
                data = merge_values(data, require_map(document, "a values file"))
                layers.append(Layer(path, document))
        except ChartgenError as error:
            problems += error.problems
            kind = UsageError if isinstance(error, UsageError) else kind
    if problems:
        raise kind(problems)
    return layers, data


def _apply_flag(data: dict[str, Plain], flag: Flag, text: str) -> tuple[dict[str, Plain], Layer]:
    from chartgen.helm import set_flags

    source = set_flags.label(flag, text)
    try:
        if flag == "--set-json" and text.strip().startswith("{"):
            whole = _json_object(text)
            return merge_values(data, whole), Layer(source, assigned=tuple(_leaf_paths(whole)))
        assignments = set_flags.parse_flag(flag, text, file_text)
        for assignment in assignments:
            data = set_flags.assign(data, assignment)
    except set_flags.MalformedError as error:
        raise UsageError(Problem(str(error), source)) from None
    return data, Layer(source, assigned=tuple(assignment.keys for assignment in assignments))


def _json_object(text: str) -> dict[str, Plain]:
    from chartgen.helm import set_flags

    stripped = text.strip()
    value, end = set_flags.decode_json(stripped)
    if end != len(stripped):
        raise set_flags.MalformedError(f"is not valid JSON: unexpected text after character {end}")
    return cast("dict[str, Plain]", value)


def _leaf_paths(data: dict[str, Plain], at: Keys = ()) -> Iterable[Keys]:
    for key, value in data.items():
        if isinstance(value, dict) and value:
            yield from _leaf_paths(value, (*at, key))
        else:
            yield (*at, key)


def file_text(name: str) -> str:
    """Read the file of a `--set-file` unchanged; `read_text` converts line ends but reports why reading fails."""
    read_text(Path(name))
    return Path(name).read_bytes().decode()


def _exists(data: Plain, keys: Keys) -> bool:
    for key in keys:
        if isinstance(data, dict) and key in data:
            data = data[str(key)]
        elif isinstance(data, list) and isinstance(key, int) and key < len(data):
            data = data[key]
        else:
            return False
    return True


def _coalesce_inner(defaults: dict[str, Plain], values: dict[str, Plain]) -> dict[str, Plain]:
    present: dict[str, Plain] = {key: default for key, default in defaults.items() if default is not None}
    return coalesce(present, values)


def _without_nulls(value: Plain) -> Plain:
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(item) for key, item in value.items() if item is not None}
