"""The text of Go templates: masked so that YAML can parse it, checked block by block, cut into segments.

This module does not evaluate templates; Helm does. Composer tags (`<%= indent %>`) are masked like Go actions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from chartgen.errors import Problem

# The parts of an action, matched one after another, so that a text of only `{{` does not cost more than any other.
_OPEN = re.compile(r"(?P<comment>\{\{-?\s*/\*)|\{\{|<%")
_COMMENT_END = re.compile(r"\*/\s*-?\}\}")
_BODY = re.compile(r"""(?: `[^`]*` | "(?:\\.|[^"\\\n])*" | [^`"}]+ | \}(?!\}) )*""", re.VERBOSE)
_WORD = re.compile(r"\{\{-?\s*([A-Za-z_]\w*|\$\w*\s*:?=|/\*)")
_OPENERS = frozenset(("if", "range", "with", "define", "block"))
_SILENT = _OPENERS | {"else", "end", "template", "break", "continue"}


class Action(NamedTuple):
    """One `{{ ... }}` or `<% ... %>` of a text: itself, its offset, and its line and column, counted from 1."""

    text: str
    start: int
    line: int
    column: int
    word: str  # `if`, `range`, `else`, `end`, ... for control actions, `""` for printing actions.


@lru_cache(maxsize=8)  # several functions ask for those of one text
def actions(text: str) -> tuple[Action, ...]:
    """Return all actions of a text in order."""
    line, last, found = 1, 0, []
    for start, end in _spans(text):
        line += text.count("\n", last, start)
        last = start
        action = text[start:end]
        found.append(Action(action, start, line, start - text.rfind("\n", 0, start), _control_word(action)))
    return tuple(found)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each action. An unclosed opening is not an action, up to the place of the fault."""
    at, last_tag = 0, None
    while opened := _OPEN.search(text, at):
        start = opened.start()
        if opened["comment"] and (closed := _COMMENT_END.search(text, opened.end())):
            at = closed.end()
        elif opened[0] == "<%":
            last_tag = text.rfind("%>") if last_tag is None else last_tag
            if start + 2 > last_tag:
                at = start + 2
                continue
            at = text.index("%>", start + 2) + 2
        else:
            end = _BODY.match(text, start + 2).end()  # type: ignore[union-attr]  # it matches any text, at least the empty one
            if not text.startswith("}}", end):
                at = max(end, start + 2)
                continue
            at = end + 2
        yield start, at


def _replaced(text: str, replace: Callable[[Action], str]) -> str:
    """Replace each action of a text."""
    parts, last = [], 0
    for action in actions(text):
        parts += [text[last : action.start], replace(action)]
        last = action.start + len(action.text)
    return "".join((*parts, text[last:]))


def _control_word(action: str) -> str:
    if action.startswith("<%"):
        return "" if action.startswith("<%=") else "<%"
    match = _WORD.match(action)
    if match is None:
        return ""
    word = match[1]
    if word in _SILENT:
        return word
    return "comment" if word == "/*" else "assign" if word.endswith("=") else ""


@lru_cache(maxsize=8)
def mask(text: str) -> str:
    """Replace actions so that the rest parses as YAML; every line keeps its number.

    A line of control actions, comments or only actions becomes blank. An action within a line becomes a placeholder
    word, a different one each time, so that two templated keys never count as duplicates. From
    `{{ if }}a{{ else }}b{{ end }}` within a line, only the first branch stays.
    """
    count = 0

    def replace(action: Action) -> str:
        nonlocal count
        count += 1
        mark = {"": f"_go{count}_", "else": "e", "end": "n"}.get(action.word, "")
        return f"\0{mark}\0" + "\n" * action.text.count("\n")

    lines = []
    for line in _replaced(text, replace).split("\n"):
        bare = re.sub(r"\0\w*\0", "", line)
        lines.append(_first_branches(line) if bare.strip() else "")
    return "\n".join(lines)


def _first_branches(line: str) -> str:
    """Drop the marks of a masked line, and the text between an else and its end."""
    parts = re.split(r"\0([en])\0", line)
    marks, last_end = parts[1::2], max((i for i, mark in enumerate(parts[1::2]) if mark == "n"), default=-1)
    kept, dropping = [parts[0]], False
    for index, (mark, piece) in enumerate(zip(marks, parts[2::2], strict=True)):
        dropping = mark == "e" and index < last_end
        kept.append("" if dropping else piece)
    return "".join(kept).replace("\0", "")


def is_placeholder(value: object) -> bool:
    """Report whether a masked value contains a part that only Helm knows."""
    return isinstance(value, str) and re.search(r"_go\d+_", value) is not None


def check_blocks(text: str, path: Path | str) -> list[Problem]:
    """Return a problem for each block that does not open and close inside the text."""
    problems, stack = [], []
    for action in actions(text):
        if action.word in _OPENERS:
            stack.append(action)
        elif action.word == "end" and not stack:
            problems.append(Problem("{{ end }} closes nothing", path, action.line, action.column, "remove it"))
        elif action.word == "end":
            stack.pop()
        elif action.word == "else" and not stack:
            problems.append(Problem("{{ else }} outside of a block", path, action.line, action.column, "remove it"))
    for action in stack:
        hint = "close it in this file: each slot file is a whole of its own"
        problems.append(Problem(f"{{{{ {action.word} }}}} is not closed", path, action.line, action.column, hint))
    problems += _unclosed_braces(text, path)
    return problems


def _unclosed_braces(text: str, path: Path | str) -> list[Problem]:
    rest = _replaced(text, lambda action: "\n" * action.text.count("\n"))
    return [
        Problem("'{{' without '}}'", path, number, line.index("{{") + 1, "close the action")
        for number, line in enumerate(rest.split("\n"), 1)
        if "{{" in line
    ]


def last_stage(action: Action) -> str:
    """Return the last command of a printing action's pipeline, without text in quotes; nothing for other actions."""
    if action.word or action.text.startswith("<%"):
        return ""
    bare = re.sub(r'`[^`]*`|"(?:\\.|[^"\\\n])*"', '""', action.text[2:-2]).strip("- \t\n")
    while (inner := re.sub(r"\([^()]*\)", "", bare)) != bare:
        bare = inner
    return bare.rpartition("|")[2].strip()


def depths(text: str) -> list[int]:
    """Return the number of open blocks at the start of each line."""
    opened = [0] * (text.count("\n") + 2)
    for action in actions(text):
        end = action.line + action.text.count("\n")
        if action.word in _OPENERS:
            opened[end] += 1
        elif action.word == "end":
            opened[end] -= 1
    level, result = 0, []
    for change in opened[: text.count("\n") + 1]:
        level += change
        result.append(level)
    return result


def split_definitions(text: str) -> tuple[str, str]:
    """Return a template's text outside of definitions, and its definitions with the comments above them."""
    spans: list[tuple[int, int]] = []
    opened, begin, comment = 0, None, None
    for action in actions(text):
        end = action.start + len(action.text)
        if action.word == "define" and not opened:
            begin = comment[0] if comment and not text[comment[1] : action.start].strip() else action.start
        opened += (action.word in _OPENERS) - (action.word == "end")
        if begin is not None and not opened:
            spans.append((begin, end))
            begin = None
        comment = (action.start, end) if action.word == "comment" else None
    starts = [0, *(end for _, end in spans)]
    ends = [*(start for start, _ in spans), len(text)]
    outside = "".join(text[start:end] for start, end in zip(starts, ends, strict=True))
    return outside, "\n\n".join(text[start:end] for start, end in spans)
