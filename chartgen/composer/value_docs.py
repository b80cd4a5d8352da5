"""Documentation of values: the `# --` comment above or behind each key, which README and published schema repeat."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from chartgen.helm.yaml import Document, Keys, Plain

_WIDTH = 160  # of a line, as editors and reviews show
_MARK = "  # -- "
# A description of one line, and a key whose value is on its own line.
_DESCRIBED = re.compile(
    r"^(?P<pad> *)# -- (?P<meaning>.*)\n(?P<setting>(?P=pad)[\w-]+: [^|>\n].*)$(?!\n(?P=pad) +[^ #])", re.MULTILINE
)
# One encoder for a chart's hundreds of values: json.dumps creates one for each call.
ENCODE = json.JSONEncoder(ensure_ascii=False).encode


class ValueRow(NamedTuple):
    """One value: its dotted key, its default as one line of JSON, and its description."""

    key: str
    default: str
    meaning: str
    keys: Keys


def value_rows(text: str, document: Document) -> Iterator[ValueRow]:
    """Yield all values of a values file in its own order.

    Args:
        document: The same file, parsed.
    """
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
