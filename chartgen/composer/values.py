"""The values.yaml of a chart: join the texts of its parts, write the target's own defaults over them, document them.

The `# --` comment above or behind each key describes it; README and published schema repeat it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from chartgen.composer.definition import file_in, has_file
from chartgen.composer.schema import ENCODE, read_schema
from chartgen.errors import did_you_mean, refuse
from chartgen.helm import gotemplate
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.yaml import Document, Keys, Plain, load, require_map

_TOP_LEVEL = re.compile(r"^(?:#.*\n|\n)*(?P<key>[A-Za-z][\w-]*):", re.MULTILINE)
_WIDTH = 160  # of a line, as editors and reviews show
_MARK = "  # -- "
# A description of one line, and a key whose value is on its own line.
_DESCRIBED = re.compile(
    r"^(?P<pad> *)# -- (?P<meaning>.*)\n(?P<setting>(?P=pad)[\w-]+: [^|>\n].*)$(?!\n(?P=pad) +[^ #])", re.MULTILINE
)


class Part(NamedTuple):
    """One of the values files that are joined into a chart's values.yaml."""

    path: Path
    source: str  # its text as written, for line numbers in messages
    text: str  # its text with the composer's tags filled in
    schema: dict[str, Any] | None = None  # its schema; None for that of the file beside it

    @property
    def document(self) -> Document:
        """Return the file's data; keys that a tag writes are placeholders."""
        return _read(self.source, self.path)


def join_parts(parts: Sequence[Part]) -> str:
    """Join values files in their order; keys of a shared map are merged into its first place."""
    blocks: dict[str, str] = {}
    for part in parts:
        for key, text in top_level_blocks(part.text):
            blocks[key] = blocks[key] + _TOP_LEVEL.sub("", text, count=1).lstrip("\n") if key in blocks else text
    return "".join(blocks.values())


def top_level_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield each top-level key of a values file with its text; the comments above a key belong to it."""
    found = list(_TOP_LEVEL.finditer(text))
    for match, following in zip_longest(found, found[1:]):
        end = following.start() if following else len(text)
        yield match["key"], text[match.start() : end].rstrip("\n") + "\n"


def check_parts(parts: Sequence[Part]) -> None:
    """Check that each key has one owner, and that the schema beside its file describes it.

    Several parts may add keys to a top-level map, such as `setup`; each of those keys has one owner.

    Args:
        parts: The values files.

    Raises:
        ChartgenError: A key has two owners, or no schema describes it.
    """
    owners: dict[Keys, Path] = {}
    maps: dict[str | int, Path] = {}
    problems = []
    for part in parts:
        folder, schema = part.path.parent, part.schema or {}
        if part.schema is None and has_file(folder, SCHEMA_FILE):
            schema = read_schema(file_in(folder, SCHEMA_FILE))
        known = schema.get("properties", {})
        own: dict[Keys, Path] = {}
        for keys in _owned(require_map(part.document, "a values file")):
            owner = owners.get(keys) or owners.get(keys[:1])
            if owner or (len(keys) == 1 and (owner := maps.get(keys[0]))):
                hint = "each key has one owner; use another name"
                dotted = ".".join(map(str, keys))
                problems.append(part.document.problem(f"{dotted!r} is already defined in {owner}", keys, hint))
            elif keys[0] not in known:
                hint = "describe it in values.schema.json beside this file"
                problems.append(part.document.problem(f"{keys[0]!r} has no schema", keys, hint))
            own[keys] = part.path
        owners = own | owners
        maps = {keys[0]: path for keys, path in own.items() if len(keys) > 1} | maps
    refuse(problems)


def _owned(data: dict[str, Plain]) -> Iterator[Keys]:
    """Yield the keys that a values file owns: those of its top-level maps, and its other top-level keys."""
    for key, value in data.items():
        yield from ((key, inner) for inner in value) if isinstance(value, dict) and value else [(key,)]


def with_defaults(text: str, target: Document, values: dict[str, Plain]) -> tuple[str, list[ValueRow]]:
    """Write a target's default values over the parts' own, and keep comments and order.

    Args:
        text: The joined values.yaml.
        values: The content of its `values` key.

    Returns:
        The new text, and a row for each value.

    Raises:
        ChartgenError: The target sets values that the chart does not have.
    """
    document, rows = _parsed(text)
    table = {row.keys: row for row in rows}
    edits, problems = [], []
    for keys, value in _settings(values, table):
        span = document.span(keys)
        if keys not in table or span is None:
            dotted = ".".join(map(str, keys))
            hint = did_you_mean(dotted, [row.key for row in table.values()])
            problems.append(target.problem(f"the chart has no value {dotted!r}", ("values", *keys), hint))
        else:
            table[keys] = table[keys]._replace(default=ENCODE(value))
            edits.append((*span, table[keys].default))
    refuse(problems)
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text, list(table.values())


@lru_cache(maxsize=16)
def _parsed(text: str) -> tuple[Document, tuple[ValueRow, ...]]:
    """Parse joined values, which charts of one target and kind share."""
    document = load(text, "values.yaml")
    return document, tuple(value_rows(text, document))


def default_place(keys: Keys, parts: Sequence[Part], target: Document) -> tuple[Path | str, int, int]:
    """Return where a default value was written: in the target, or in the values file of its owner."""
    if target.span(("values", *keys)) is not None:
        return (target.path, *target.position(("values", *keys)))
    for part in parts:
        if keys and part.document.span(keys[:2]) is not None:
            return (part.path, *part.document.position(keys))
    return ("values.yaml", 0, 0)


def _settings(values: Plain, table: dict[Keys, ValueRow], at: Keys = ()) -> Iterator[tuple[Keys, Plain]]:
    """Walk a target's values down to the keys of the chart; a map that is empty in the chart is set whole."""
    if isinstance(values, dict) and at not in table:
        for key, value in values.items():
            yield from _settings(value, table, (*at, key))
    else:
        yield at, values


@lru_cache(maxsize=256)
def _read(source: str, path: Path) -> Document:
    return load(gotemplate.mask(source) if "<%" in source else source, path)


class ValueRow(NamedTuple):
    """One value: its dotted key, its default as one line of JSON, and its description."""

    key: str
    default: str
    meaning: str
    keys: Keys


def value_rows(text: str, document: Document) -> Iterator[ValueRow]:
    """Yield all values of a values file, also given parsed, in its own order."""
    lines = text.split("\n")
    for keys, value, line in document.leaves():
        yield ValueRow(".".join(map(str, keys)), _one_line(value), _comment_above(lines, line - 2), keys)


def _one_line(value: Plain) -> str:
    return ENCODE(value)


def beside(text: str) -> str:
    """Move the descriptions of a values file behind their keys, where a line has room for both."""
    return _DESCRIBED.sub(_behind, text)


def _behind(found: re.Match[str]) -> str:
    line = f"{found['setting']}{_MARK}{found['meaning']}"
    return line if len(line) <= _WIDTH and "#" not in found["setting"] else found[0]


def _comment_above(lines: list[str], index: int) -> str:
    if behind := lines[index + 1].partition(_MARK)[2]:
        return behind
    found: list[str] = []
    while index >= 0 and lines[index].lstrip().startswith("#"):
        comment = lines[index].lstrip().removeprefix("#").strip()
        if comment.startswith("-- "):
            return " ".join([comment.removeprefix("-- "), *found])
        found.insert(0, comment)
        index -= 1
    return ""
