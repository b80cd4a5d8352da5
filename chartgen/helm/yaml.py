"""YAML text to plain data, read as Helm reads it, with the place of every key.

Helm reads YAML through sigs.k8s.io/yaml, a fork of go-yaml v2: `no` is a boolean, `012` is octal, `1e3` is a number
and a date is a string. Python's readers differ in each case (its resolve.go), so this module takes only the node tree
from ruamel.yaml and resolves plain scalars by go-yaml's own table.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, Union

from chartgen.errors import ChartgenError, Problem, UsageError
from chartgen.files import refuse_pipe
from chartgen.helm.yaml_nodes import MAX_DEPTH, Node, compose_nodes, resolve_scalar, too_deep

Plain: TypeAlias = Union[bool, int, float, str, "list[Plain]", "dict[str, Plain]", None]
Keys: TypeAlias = tuple[str | int, ...]
# go-yaml v2 decode.go (alias_ratio_range_low): the limit for the expansion of all aliases.
_MAX_EXPANDED = 400_000
# Far beyond any values file; the Secret in which Helm stores a release is limited to 1 MiB.
_LARGEST = 10_000_000
_DOCUMENT = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_TAGS = "tag:yaml.org,2002:"
# Tags of values that go-yaml v2 reads as plain ones, quoted or not (its decode.go, `scalar`).
_RESOLVED = ("bool", "float", "int", "null", "timestamp")
# Characters that YAML reads as a line break or rejects inside quotes, although JSON allows them there.
_UNSAFE = "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]"
# Plain words that Helm would read as another type.
_NO_TEXTS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")


@dataclass(frozen=True)
class Document:
    """One YAML document: its data, and the place of each key."""

    data: Plain  # plain Python data; mapping keys are strings, as in JSON
    path: Path | str
    root: Node | None  # the node tree; None for an empty document
    # Places where a key occurs again with another value, which wins; only for documents loaded with duplicates
    overwritten: Sequence[Problem] = ()

    def position(self, keys: Keys) -> tuple[int, int]:
        """Return the 1-based (line, column) of a key path; the nearest parent's when the key comes from a merge."""
        node, mark = self.root, getattr(self.root, "start_mark", None)
        for key in keys:
            step = _child(node, key)
            if step is None:
                break
            node, mark = step
        return (mark.line + 1, mark.column + 1) if mark else (0, 0)

    def _node(self, keys: Keys) -> Node | None:
        """Return the node of a value; None when a key is missing."""
        node = self.root
        for key in keys:
            node = (_child(node, key) or (None,))[0]
        return node

    def part(self, keys: Keys) -> Document:
        """Return the document of a value inside this one, with places in the same file."""
        data: Any = self.data
        for key in keys:
            data = data[key]
        return Document(data, self.path, self._node(keys))

    def leaves(self) -> Iterator[tuple[Keys, Plain, int]]:
        """Yield all scalars, empty maps and lists with their key path and the 1-based line of their key."""
        return _leaf_lines(self.root, self.data, (), 0)

    def span(self, keys: Keys) -> tuple[int, int] | None:
        """Return the offsets of a value's text, or None when the key is missing."""
        node = self._node(keys)
        return None if node is None else (node.start_mark.index, node.end_mark.index)

    def text_position(self, keys: Keys, offset: int) -> tuple[int, int]:
        """Return the 1-based (line, column) of a character of a text, or of its key where it has several lines."""
        node = self._node(keys)
        if node is None or node.style in ("|", ">") or node.start_mark.line != node.end_mark.line:
            return self.position(keys)
        return node.start_mark.line + 1, node.start_mark.column + 1 + bool(node.style) + offset

    def problem(self, message: str, keys: Keys = (), hint: str = "") -> Problem:
        """Build a Problem at the place of a key path."""
        return Problem(message, self.path, *self.position(keys), hint)


def load(text: str, path: Path | str, *, allow_duplicates: bool = False) -> Document:
    """Read the one YAML document in a text.

    Args:
        allow_duplicates: Let the last of two equal keys win, as Helm does; for masked templates, whose branches repeat
            a key, and for the output of third-party charts.

    Raises:
        ChartgenError: Syntax error, duplicate key, several documents, or a key that is not a scalar.
    """
    root = compose_nodes(text, path)
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


def load_documents(path: Path) -> list[Document]:
    """Read every YAML document in a file, with places in the file; see `load`."""
    text = read_text(path)
    starts = [0, *(match.start() for match in _DOCUMENT.finditer(text))]
    parts = zip(starts, [*starts[1:], len(text)], strict=True)
    found = ["\n" * text.count("\n", 0, start) + text[start:end] for start, end in parts if text[start:end].strip()]
    return [load(each, path) for each in found]


def read_text(path: Path) -> str:
    """Read a UTF-8 file; every failure raises an error of one clear line."""
    try:
        text = _content(path).decode("utf-8").removeprefix("\ufeff")
    except FileNotFoundError:
        raise UsageError(Problem("no such file", path, hint="check the path")) from None
    except IsADirectoryError:
        raise UsageError(Problem("is a folder, not a file", path)) from None
    except UnicodeDecodeError as error:
        raise ChartgenError(Problem(f"is not UTF-8 text (byte {error.start})", path, hint="save it as UTF-8")) from None
    except OSError as error:
        raise ChartgenError(Problem(f"cannot be read: {error.strerror}", path)) from None
    if text.startswith("\ufeff"):  # Helm would lose the first letter of each key
        raise ChartgenError(Problem("begins with two byte order marks", path, hint="save it as UTF-8 without any"))
    if "\0" in text:
        raise ChartgenError(
            Problem("is not text: it contains a NUL character", path, text[: text.index("\0")].count("\n") + 1)
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _content(path: Path) -> bytes:
    """Read a file in bounded time and memory: do not wait for the writer of a pipe or read an endless device."""
    refuse_pipe(path)
    with path.open("rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ChartgenError(Problem("is larger than 10 MB", path, hint="keep data out of it; a release may have 1 MB"))
    return content


def require_map(document: Document, what: str) -> dict[str, Plain]:
    """Return a document's top-level map; an empty map for an empty document."""
    if document.data is None:
        return {}
    if not isinstance(document.data, dict):
        raise ChartgenError(document.problem(f"{what} must be a map of keys, not {type_name(document.data)}"))
    return document.data


def dotted(keys: Sequence[str | int]) -> str:
    """Format a key path for `--set`: `a.b[0].c`, with dots inside a key escaped."""
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else "." * bool(text) + key.replace(".", r"\.")
    return text


def type_name(value: object) -> str:
    """Return the name of a value's type in YAML."""
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
    if node.ctag.suffix is not None and _tag(node) == "binary":
        return _decoded(node.value)
    value = node.value if node.style else resolve_scalar(node.value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else node.value


def _tag(node: Node) -> str:
    """Return the tag of a scalar, which only a parser in Python gives to each."""
    return str(node.ctag).removeprefix(_TAGS)


def _decoded(text: str) -> str:
    """Return the text in base64; other text, which Helm rejects, unchanged."""
    try:
        return base64.b64decode(text).decode("utf-8", "replace")
    except ValueError:
        return text


class _Builder:
    """Builds plain data from nodes; a node with two references is built once, so aliases cannot explode."""

    def __init__(self, text: str, path: Path | str, *, allow_duplicates: bool) -> None:
        self._text, self._path, self._allow_duplicates = text, path, allow_duplicates
        self.problems: list[Problem] = []
        self.overwritten: list[Problem] = []
        self._built: dict[int, Plain] = {}
        self._sizes: dict[int, int] = {}
        self._size, self._depth = 0, 0

    def build(self, node: Node) -> Plain:
        """Return a node's data; raise ChartgenError if it is nested too deeply, or its aliases expand to too much."""
        self._size += 1
        if node.id == "scalar":
            return self._scalar(node)
        key = id(node)
        if key in self._built:
            self._size += self._sizes.get(key, 0)
        else:
            self._built[key] = None  # a node that contains itself reads as null, which prevents infinite recursion
            self._build_collection(node, key)
        if self._size > _MAX_EXPANDED and self._size > 10 * len(self._text):
            raise ChartgenError(Problem("its aliases expand to too much data", self._path))
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
        tag = "" if node.ctag.suffix is None else _tag(node)
        begin = self._text[node.start_mark.index : node.start_mark.index + 1]
        if tag == "binary":
            return _decoded(node.value)
        is_text = node.style or begin == "!" or (tag and begin == "&")
        return node.value if is_text and tag not in _RESOLVED else resolve_scalar(node.value)

    def _mapping(self, node: Node) -> dict[str, Plain]:
        """Return a map; what it merges replaces keys before it, as in go-yaml v2."""
        data: dict[str, Plain] = {}
        own: dict[str, Plain] = {}
        for key, value in node.value:
            if key.id != "scalar":
                self._report(key, "a key must be text", "")
            elif key.value == "<<" and (_tag(key) == "merge" or not (key.style or key.ctag.suffix)):
                if "&" in self._text[key.start_mark.index : key.end_mark.index]:  # go-yaml merges at no alias of it
                    self._report(key, "'<<' has an anchor", "write it without")
                data.update(self._merged(value))
            else:
                name, built = _key_text(key), self.build(value)
                if name in own and not self._allow_duplicates:
                    self._report(key, f"duplicate key {name!r}", "keep one of the two")
                elif name in own and own[name] != built:
                    message = f"duplicate key {name!r} with another value, and the last one counts"
                    self.overwritten.append(self._problem(key, message, "keep one of the two"))
                data[name] = own[name] = built
        return data

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
        if key in data:  # what a merge (<<) refers to stands elsewhere
            yield from _leaf_lines(value, data[key], (*at, key), name.start_mark.line + 1)


def values_text(data: dict[str, Any], indent: int = 0) -> str:
    """Return values as YAML that Helm reads back unchanged: texts are quoted, lists are on one line."""
    lines = []
    for key, value in data.items():
        name = key if re.fullmatch(r"[A-Za-z_][\w.-]*", key) and key.lower() not in _NO_TEXTS else json_text(key)
        if isinstance(value, dict) and value:
            lines.append(f"{' ' * indent}{name}:\n{values_text(value, indent + 2)}")
        else:
            lines.append(f"{' ' * indent}{name}: {json_text(value)}\n")
    return "".join(lines)


def json_text(data: Any, *, allow_nan: bool = True) -> str:
    """Return data as JSON that YAML reads the same: two escapes for one character are an error there."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=allow_nan)
    return re.sub(_UNSAFE, lambda match: f"\\u{ord(match[0]):04x}", text)
