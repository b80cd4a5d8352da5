"""The values that the templates of a chart read by a path that begins with `.Values`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from chartgen.helm import gotemplate
from chartgen.helm.chart import Chart

_GUARD = re.compile(r"\b(?:default|hasKey|dig|coalesce|ternary|empty|not|and|or|kindIs|required)\b")
_FAIL = re.compile(r"\{\{-?\s*fail\b")
_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|`[^`]*`')
_PATH = re.compile(r"(?<![\w.)])(?P<root>\$?)\.Values\.(?P<keys>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
_GROUP = re.compile(r"(?<!\w)\(\s*(\$?\.[\w.]+)\s*\)(?=\.)")
_KEYED = re.compile(r'\(?\b(?:index|get)\s+(\$?\.[\w.]+)((?:\s+"[A-Za-z_]\w*")+)(?=\s*(?:\)|\||-?\}\}))\)?')
_NAME = re.compile(r'"([^"]+)"')
_CALL = re.compile(r'\b(?:include|template|block)\s+"([^"]+)"\s*([^\s)}|]*)')
_CHANGE = re.compile(r'\b(set|(?:must)?[mM]erge(?:Overwrite)?)\s+(\(?[^\s()]+)(?:\s+"([^"]+)")?')
_ASSIGNED = re.compile(r"(\$\w+)\s*:?=\s*(.*)\}\}", re.DOTALL)
_MADE = re.compile(r"\(*(?:dict|deepCopy|mustDeepCopy|omit|pick|from(?:Yaml|Json|Toml)|include|(?:must)?[mM]erge)")


class Read(NamedTuple):
    """A value that a template reads."""

    keys: tuple[str, ...]  # the path of keys below `.Values`
    path: str  # the template, relative to the chart
    line: int  # 1-based line of the action
    guarded: bool  # whether the action only asks for the value, or replaces a missing one


class _Code(NamedTuple):
    """An action, the definition that it is in, and whether the dot in it is the context of that, or the root."""

    path: str
    action: gotemplate.Action
    text: str
    definition: str
    is_root: bool


def value_reads(chart: Chart, *, is_foreign: bool) -> list[Read]:
    """Return, in order, the reads of values that no template of the chart changes; none if any value may change.

    A definition counts if all its calls pass the root context, and no subchart calls it. In a chart of chartgen each
    context is a copy of the root, with the values.

    Args:
        is_foreign: Whether chartgen did not compose it.
    """
    texts = {path: text for path, text in chart.files.items() if "templates/" in path}
    own = {path: text for path, text in texts.items() if path.startswith("templates/")}
    codes = [code for path, text in own.items() for code in _codes(path, text)]
    reads = sorted(
        {read for code, after in zip(codes, [*codes[1:], None], strict=False) for read in _reads(code, after)}
    )
    if not is_foreign:
        return [read for read, _ in reads]
    defined = {name for text in texts.values() for name in re.findall(r'\{\{-?\s*(?:define|block)\s+"([^"]+)"', text)}
    calls = [(name, code, context) for code in codes for name, context in _CALL.findall(code.text)]
    changed = set(_changed(codes))
    if None in changed or not defined.issuperset(name for name, code, context in calls if _is_root(code, context)):
        return []  # a definition of another chart may change any value
    lent = {name for path, text in texts.items() if path not in own for name, _ in _CALL.findall(text)}
    rooted = {"", *(name for name, *_ in calls)} - lent
    while partly := {
        name
        for name, code, context in calls
        if name in rooted and not (code.definition in rooted and _is_root(code, context))
    }:
        rooted -= partly
    return [
        read
        for read, definition in reads
        if definition in rooted
        and changed.isdisjoint(read.keys[:depth] for depth in range(len(read.keys) + 1))
        and changed.isdisjoint(("*", key) for key in read.keys)
    ]


def _is_root(code: _Code, context: str) -> bool:
    return context == "$" or (context == "." and code.is_root)


def _codes(path: str, text: str) -> Iterator[_Code]:
    opened = [("", True)]
    for action in gotemplate.actions(text):
        if action.word == "comment" or action.text.startswith("<%"):
            continue
        if action.word in ("end", "else") and opened[1:]:
            opened.pop()
        definition, is_root = opened[-1]
        if action.word in ("define", "block"):
            opened.append((next(iter(_NAME.findall(action.text)), "?"), True))  # no call has that name
        elif action.word in ("if", "else", "with", "range"):
            opened.append((definition, is_root and action.word in ("if", "else")))
        code = _plain(action.text) if ".Values" in action.text else action.text
        yield _Code(path, action, code, definition, is_root)


def _plain(code: str) -> str:
    """Write `(.a).b`, `index .a "b"` and `get .a "b"` as the path that each is."""
    code = _KEYED.sub(lambda found: ".".join([found[1].rstrip("."), *_NAME.findall(found[2])]), code)
    return _GROUP.sub(r"\1", code)


def _reads(code: _Code, after: _Code | None) -> Iterator[tuple[Read, str]]:
    """Yield the reads of an action with their definition; `if OLD` before `fail` refuses a value that was removed."""
    if after is not None and after.path == code.path and _FAIL.match(after.action.text):
        return
    guarded = code.action.word in ("if", "with", "else") or _GUARD.search(code.text) is not None
    for found in _PATH.finditer(_TEXT.sub('""', code.text)):
        if found["root"] or code.is_root:
            yield Read(tuple(found["keys"].split(".")), code.path, code.action.line, guarded), code.definition


def _changed(codes: list[_Code]) -> Iterator[tuple[str, ...] | None]:
    """Yield the paths of values that templates set or merge into, `*` before a key of any map; None for all values."""
    made: dict[tuple[str, str], bool] = {}  # whether each assignment of a file's variable makes a new map
    for code in codes:
        for name, value in _ASSIGNED.findall(code.text):
            made[code.path, name] = made.get((code.path, name), True) and _MADE.match(value) is not None
    for code in codes:
        for function, target, key in _CHANGE.findall(code.text):
            found = re.fullmatch(r"\$?\.Values((?:\.\w+)*)", target)
            if found:
                keys = tuple(filter(None, found[1].split(".")))
                yield (*keys, key) if key and function == "set" else keys
            elif function == "set":
                yield ("*", key)
            elif not _MADE.match(target) and not made.get((code.path, target.partition(".")[0])):
                yield None
