"""YAML text to plain data, read as Helm reads it, with the place of every key.

Helm reads YAML through sigs.k8s.io/yaml, a fork of go-yaml v2: `no` is a boolean, `012` is octal, `1e3` is a number
and a date is a string. Python's readers differ in each (its resolve.go), so this module takes only the node tree
from ruamel.yaml and resolves plain scalars by go-yaml's own table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, Union

from chartgen.errors import ChartgenError, Problem
from chartgen.helm.yaml_nodes import MAX_DEPTH, Node, compose, too_deep

Plain: TypeAlias = Union[bool, int, float, str, "list[Plain]", "dict[str, Plain]", None]
Keys: TypeAlias = tuple[str | int, ...]

# go-yaml v2 resolve.go: the words that are not strings when they stand unquoted.
_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|([1-9][0-9]*|0))")
_BASES = (16, 2, 8, 10)
_NUMERIC_START = frozenset("+-.0123456789")
# go-yaml v2 decode.go (alias_ratio_range_low): what all aliases together may grow to.
_MAX_EXPANDED = 400_000
# Far beyond any values file; the Secret that Helm keeps a release in holds 1 MiB.
_LARGEST = 10_000_000
_STR = "tag:yaml.org,2002:str"


def resolve_scalar(text: str) -> bool | int | float | str | None:
    """Return the value of an unquoted scalar as go-yaml v2 resolves it.

    Args:
        text: The scalar as written, without quotes.

    Returns:
        None, a bool, an int within 64 bits, a float or the text itself. Dates stay text, as in Helm.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC_START:
        return text
    digits = text.replace("_", "")
    if (match := _INTEGER.fullmatch(digits)) and (number := _integer(match)) is not None:
        return number
    real = float(digits) if _FLOAT.fullmatch(digits) else math.inf
    return real if math.isfinite(real) else text


def _integer(match: re.Match[str]) -> int | None:
    """Return a whole number within 64 bits; None for a larger one, which Go reads as a float or as text."""
    group, base = next(each for each in zip(match.groups()[1:], _BASES, strict=True) if each[0])
    if len(group.lstrip("0")) > 64:  # more digits than any base needs, and more than Python reads in time
        return None
    number = int(group, base) * (-1 if match[1] == "-" else 1)
    return number if -(2**63) <= number < 2**64 else None


@dataclass(frozen=True)
class Document:
    """One YAML document: its data, and where each key of it stands.

    Args:
        data: Plain Python data; mapping keys are strings, as in JSON.
        path: The file it came from, for messages.
        root: The node tree; None for an empty document.
        overwritten: Where a key stands a second time with another value, which counts; only of documents that were
            loaded with duplicates.
    """

    data: Plain
    path: Path | str
    root: Node | None
    overwritten: Sequence[Problem] = ()

    def position(self, keys: Keys) -> tuple[int, int]:
        """Return the 1-based (line, column) of a key path; the nearest parent's when a key came from a merge."""
        node, mark = self.root, getattr(self.root, "start_mark", None)
        for key in keys:
            step = _child(node, key)
            if step is None:
                break
            node, mark = step
        return (mark.line + 1, mark.column + 1) if mark else (0, 0)

    def leaves(self) -> Iterator[tuple[Keys, Plain, int]]:
        """Walk all scalars, empty maps and lists with their key path and the 1-based line of their key."""
        return _leaf_lines(self.root, self.data, (), 0)

    def span(self, keys: Keys) -> tuple[int, int] | None:
        """Return the offsets of a value's text, or None when there is no such key."""
        node = self.root
        for key in keys:
            step = _child(node, key)
            if step is None:
                return None
            node = step[0]
        return (node.start_mark.index, node.end_mark.index) if node is not None else None

    def problem(self, message: str, keys: Keys = (), hint: str = "") -> Problem:
        """Make a Problem at the place of a key path."""
        return Problem(message, self.path, *self.position(keys), hint)


def load(text: str, path: Path | str, *, allow_duplicates: bool = False) -> Document:
    """Read the one YAML document in a text.

    Args:
        text: YAML.
        path: Its file, for messages.
        allow_duplicates: Let the last of two equal keys win, as Helm does. For masked templates, whose branches repeat
            a key, and for what charts of others render to.

    Raises:
        ChartgenError: Syntax error, duplicate key, several documents, or a key that is not a scalar.
    """
    root = compose(text, path)
    if root is None:
        return Document(None, path, None)
    builder = _Builder(text, path, allow_duplicates=allow_duplicates)
    data = builder.build(root)
    if builder.problems:
        raise ChartgenError(builder.problems)
    return Document(data, path, root, builder.overwritten)


def load_file(path: Path) -> Document:
    """Read the one YAML document in a file; see `load`."""
    return load(read_text(path), path)


def read_text(path: Path) -> str:
    """Read a UTF-8 file, with one clear line for every way in which that can fail."""
    try:
        text = _content(path).decode("utf-8").removeprefix("\ufeff")
    except FileNotFoundError:
        raise ChartgenError(Problem("no such file", path, hint="check the path")) from None
    except IsADirectoryError:
        raise ChartgenError(Problem("is a folder, not a file", path)) from None
    except UnicodeDecodeError as error:
        raise ChartgenError(Problem(f"is not UTF-8 text (byte {error.start})", path, hint="save it as UTF-8")) from None
    except OSError as error:
        raise ChartgenError(Problem(f"cannot be read: {error.strerror}", path)) from None
    if "\0" in text:
        raise ChartgenError(
            Problem("is not text: it holds a NUL character", path, text[: text.index("\0")].count("\n") + 1)
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _content(path: Path) -> bytes:
    """Read a file in bounded time and memory: no waiting for the writer of a pipe, no endless device."""
    # What a shell makes of <(command) lies there, and has a writer.
    if path.is_fifo() and not path.is_relative_to("/dev") and not path.is_relative_to("/proc"):
        raise ChartgenError(Problem("is a pipe, not a file", path, hint="write its content to a file"))
    with path.open("rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ChartgenError(Problem("is larger than 10 MB", path, hint="keep data out of it; a release holds 1 MB"))
    return content


def require_map(document: Document, what: str) -> dict[str, Plain]:
    """Return a document's top-level map, an empty one for an empty document."""
    if document.data is None:
        return {}
    if not isinstance(document.data, dict):
        raise ChartgenError(document.problem(f"{what} must be a map of keys, not {type_name(document.data)}"))
    return document.data


def type_name(value: object) -> str:
    """Name a value's type in the words of YAML users."""
    names = {dict: "a map", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "empty")


def _child(node: Node | None, key: str | int) -> tuple[Node, object] | None:
    if isinstance(key, str):
        for name, value in _pairs(node):
            if name.value == key or _key_text(name) == key:
                return value, name.start_mark
        return None
    if node is not None and node.id == "sequence" and key < len(node.value):
        return node.value[key], node.value[key].start_mark
    return None


def _pairs(node: Node | None) -> list[tuple[Node, Node]]:
    return node.value if node is not None and node.id == "mapping" else []


def _key_text(node: Node) -> str:
    value = node.value if node.style else resolve_scalar(node.value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else node.value


class _Builder:
    """Builds plain data from nodes; a node that is referred to twice is built once, so aliases cannot explode."""

    def __init__(self, text: str, path: Path | str, *, allow_duplicates: bool) -> None:
        self._text, self._path, self._allow_duplicates = text, path, allow_duplicates
        self.problems: list[Problem] = []
        self.overwritten: list[Problem] = []
        self._built: dict[int, Plain] = {}
        self._sizes: dict[int, int] = {}
        self._size, self._depth = 0, 0

    def build(self, node: Node) -> Plain:
        """Return a node's data.

        Raises:
            ChartgenError: It is nested too deeply, or its aliases stand for too much.
        """
        self._size += 1
        if node.id == "scalar":
            return self._scalar(node)
        key = id(node)
        if key in self._built:
            self._size += self._sizes.get(key, 0)
        else:
            self._built[key] = None  # a node that contains itself reads as null instead of recursing for ever
            self._build_collection(node, key)
        if self._size > _MAX_EXPANDED and self._size > 10 * len(self._text):
            raise ChartgenError(Problem("its aliases stand for too much data", self._path))
        return self._built[key]

    def _build_collection(self, node: Node, key: int) -> None:
        before, self._depth = self._size, self._depth + 1
        if self._depth > MAX_DEPTH:
            raise too_deep(node, self._path)
        is_list = node.id == "sequence"
        self._built[key] = [self.build(item) for item in node.value] if is_list else self._mapping(node)
        self._sizes[key] = self._size - before
        self._depth -= 1

    def _scalar(self, node: Node) -> Plain:
        if node.style or self._text[node.start_mark.index : node.start_mark.index + 1] == "!":
            value: Plain = node.value
            if node.tag != _STR and not node.style:
                value = resolve_scalar(node.value)
            return value
        return resolve_scalar(node.value)

    def _mapping(self, node: Node) -> dict[str, Plain]:
        data: dict[str, Plain] = {}
        merged: dict[str, Plain] = {}
        for key, value in node.value:
            if key.id != "scalar":
                self._report(key, "a key must be text", "")
            elif key.value == "<<" and not key.style:
                merged.update(self._merged(value))
            else:
                name, built = _key_text(key), self.build(value)
                if name in data and not self._allow_duplicates:
                    self._report(key, f"duplicate key {name!r}", "keep one of the two")
                elif name in data and data[name] != built:
                    message = f"duplicate key {name!r} with another value, and the last one counts"
                    self.overwritten.append(self._problem(key, message, "keep one of the two"))
                data[name] = built
        return {**merged, **data}

    def _merged(self, node: Node) -> dict[str, Plain]:
        sources: Iterable[Node] = reversed(node.value) if node.id == "sequence" else [node]
        found: dict[str, Plain] = {}
        for source in sources:
            data = self.build(source)
            if isinstance(data, dict):
                found.update(data)
            else:
                self._report(source, "only a map can be merged with '<<'", "")
        return found

    def _report(self, node: Node, message: str, hint: str) -> None:
        self.problems.append(self._problem(node, message, hint))

    def _problem(self, node: Node, message: str, hint: str) -> Problem:
        mark = node.start_mark
        return Problem(message, self._path, mark.line + 1, mark.column + 1, hint)


def _leaf_lines(node: Node, data: Plain, at: Keys, line: int) -> Iterator[tuple[Keys, Plain, int]]:
    if not isinstance(data, dict) or not data:
        yield at, data, line
        return
    for name, value in _pairs(node):
        key = _key_text(name)
        yield from _leaf_lines(value, data[key], (*at, key), name.start_mark.line + 1)
