"""Go template text seen from outside: masked so that YAML can parse it, checked block by block, cut into segments.

Nothing here evaluates a template; Helm does that. Composer tags (`<%= indent %>`) are masked like Go actions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chartgen.errors import Problem

_ACTION = re.compile(
    r"""\{\{-?\s*/\*.*?\*/\s*-?\}\}                              # comment
      | \{\{ (?: `[^`]*` | "(?:\\.|[^"\\\n])*" | [^`"}] | \}(?!\}) )* \}\}
      | <%.*?%>""",
    re.DOTALL | re.VERBOSE,
)
_WORD = re.compile(r"\{\{-?\s*([A-Za-z_]\w*|\$\w*\s*:?=|/\*)")
_OPENERS = frozenset(("if", "range", "with", "define", "block"))
_SILENT = _OPENERS | {"else", "end", "template", "break", "continue"}


@dataclass(frozen=True)
class Action:
    """One `{{ ... }}` or `<% ... %>` of a text.

    Args:
        text: The action with its delimiters.
        start: Offset of its first character.
        line: 1-based line of its first character.
        column: 1-based column of its first character.
        word: `if`, `range`, `else`, `end`, ... for control actions, `""` for those that print.
    """

    text: str
    start: int
    line: int
    column: int
    word: str


def actions(text: str) -> Iterator[Action]:
    """Find all actions of a text in order."""
    line, last = 1, 0
    for match in _ACTION.finditer(text):
        line += text.count("\n", last, match.start())
        last = match.start()
        column = last - text.rfind("\n", 0, last)
        yield Action(match[0], last, line, column, _control_word(match[0]))


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


def mask(text: str) -> str:
    """Replace actions so that the rest parses as YAML, keeping every line where it is.

    A line of control actions, comments or nothing but actions becomes blank; an action within a line becomes a
    placeholder word, a different one each time so that two templated keys are never taken for duplicates. Of an
    `{{ if }}a{{ else }}b{{ end }}` within a line only the first branch stays.
    """
    count = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        word = _control_word(match[0])
        mark = f"_go{count}_" if not word else {"else": "e", "end": "n"}.get(word, "")
        return f"\0{mark}\0" + "\n" * match[0].count("\n")

    lines = []
    for line in _ACTION.sub(replace, text).split("\n"):
        bare = re.sub(r"\0\w*\0", "", line)
        kept = re.sub(r"\0e\0.*?\0n\0|\0[en]?\0", "", line).replace("\0", "")
        lines.append(kept if bare.strip() else "")
    return "\n".join(lines)


def is_placeholder(value: object) -> bool:
    """Tell whether a masked value holds something that only Helm knows."""
    return isinstance(value, str) and re.search(r"_go\d+_", value) is not None


def check_blocks(text: str, path: Path | str) -> list[Problem]:
    """Find blocks that do not open and close inside the text."""
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
    rest = _ACTION.sub(lambda match: "\n" * match[0].count("\n"), text)
    return [
        Problem("'{{' without '}}'", path, number, line.index("{{") + 1, "close the action")
        for number, line in enumerate(rest.split("\n"), 1)
        if "{{" in line
    ]


def last_stage(action: Action) -> str:
    """Give the last command of a printing action's pipeline, without text in quotes; nothing for other actions."""
    if action.word or action.text.startswith("<%"):
        return ""
    bare = re.sub(r'`[^`]*`|"(?:\\.|[^"\\\n])*"', '""', action.text[2:-2]).strip("- \t\n")
    while (inner := re.sub(r"\([^()]*\)", "", bare)) != bare:
        bare = inner
    return bare.rpartition("|")[2].strip()


def depths(text: str) -> list[int]:
    """Give for each line of a text how many blocks are open where it begins."""
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
