"""The lines of a chart's `_validate.tpl` that its rules make, one for each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from chartgen.composer.expressions import ExpressionError
from chartgen.composer.rule_template import Translator, bare, go_string, joined
from chartgen.composer.rules import TASKS, ValuesRule
from chartgen.errors import ChartgenError, Problem

_WIDTH = 160  # as editors and reviews show
# An action, or a word of text between two; each with the blank behind it.
_PIECE = re.compile(r"\{\{.*?\}\} ?|(?:(?!\{\{)\S)+ ?")
# A part of an action, with the functions that it is an argument of: a line does not end in them.
_WORD = re.compile(r'(?:\(\w+ )*(?:"(?:\\.|[^"\\])*"|[^\s"])+ ?')


class RuleLine(NamedTuple):
    """One line, and the file and line of the rule that it comes from."""

    text: str
    path: Path
    line: int


@lru_cache(maxsize=8)
def rule_lines(
    chart: str, rules: tuple[ValuesRule, ...], schema: str, offered: tuple[tuple[str, str], ...]
) -> tuple[RuleLine, ...]:
    """Return the lines of a template that rules make, those that are only warnings left out.

    Args:
        chart: The chart's name.
        rules: Its rules.
        schema: The schema of its values, as JSON.
        offered: The launchers that the chart offers, each with its task.

    Raises:
        ChartgenError: Unknown names and types that do not fit, all at once.
    """
    problems: list[Problem] = []
    lines: list[RuleLine] = []
    launchers, data = dict(offered), json.loads(schema)
    translators = {name: Translator(chart, data, name or offered[0][0]) for name in {rule.launcher for rule in rules}}
    guards = {id(rule): _guard(rule, launchers) for rule in rules}
    order = list(dict.fromkeys(guards.values()))
    for guard, group in groupby(
        sorted(rules, key=lambda rule: order.index(guards[id(rule)])), lambda rule: guards[id(rule)]
    ):
        found = list(_translated(group, translators, problems))
        if found and guard:
            found = [found[0]._replace(text=f"{{{{ if {guard} }}}}"), *found, found[-1]._replace(text="{{ end }}")]
        lines += [] if guard is None else found
    if problems:  # a policy's `required` makes a key and an expression of one text
        raise ChartgenError({problem[1:4]: problem for problem in problems}.values())
    return tuple(lines)


def _guard(rule: ValuesRule, launchers: Mapping[str, str]) -> str | None:
    """Return the condition that a rule's place, tasks and subject make; None where it counts for no launcher."""
    if {*rule.tasks}.isdisjoint(launchers.values()):
        return None
    whose = ""
    if rule.launcher:
        whose = f"eq $v.launcher {go_string(rule.launcher)}"
    elif not set(rule.tasks) >= set(launchers.values()):
        whose = f"eq $f.launcher.task {' '.join(map(go_string, (task for task in TASKS if task in rule.tasks)))}"
    if not rule.about:
        return whose
    return f"and ({whose}) $f.describesModel" if whose else "$f.describesModel"


def _translated(
    rules: Iterable[ValuesRule], translators: Mapping[str, Translator], problems: list[Problem]
) -> Iterator[RuleLine]:
    for rule in rules:
        translator = translators[rule.launcher]
        translator.each = None
        make = {"each": translator.loop, "when": translator.condition, "require": translator.negation}
        parts = dict.fromkeys(make, "")
        for at, text in [*(((field,), getattr(rule, field)) for field in make), *rule.texts()]:
            try:
                if at == ("key",):
                    translator.check_key(text)
                if text:
                    parts[str(at[0])] = make.get(str(at[0]), translator.message)(text)
            except ExpressionError as error:
                problems.append(rule.problem(at, error))
        if rule.severity == "error" and not problems:
            message = translator.message(f"{rule.key}: {rule.message}; {rule.hint}")
            place = Path(rule.document.path), rule.document.position(rule.at)[0]
            yield from (RuleLine(text, *place) for text in _refusal(message, **{field: parts[field] for field in make}))


def _refusal(refusal: str, each: str, when: str, require: str) -> list[str]:
    """Return the lines that print what breaks a rule: one where it fits, or its condition and its text."""
    conditions = [text for text in (when, require) if text not in ("", "true")]
    begin, end = (f"{{{{ if {bare(joined('and', conditions))} }}}}", "{{ end }}") if conditions else ("", "")
    if each:
        return [f"{{{{ range $each := {bare(each)} }}}}", *_fitted(begin, f"{refusal}{end}{{{{ end }}}}")]
    return _fitted(begin, f"{refusal}{end}")


def _fitted(begin: str, text: str) -> list[str]:
    return [begin + text] if len(begin + text) <= _WIDTH else [*_wrapped(begin), *_wrapped(text)]


def _wrapped(text: str) -> list[str]:
    """Break a text between its words and those of its actions; `validate` folds the lines, as YAML does."""
    words = [word for piece in _PIECE.findall(text) for word in (_WORD.findall(piece) if "{{" in piece else [piece])]
    lines, run = [""], ""
    for word in words:
        run += word
        if not word.endswith(" ") and word is not words[-1]:
            continue
        if lines[-1] and len(lines[-1]) + len(run.rstrip()) > _WIDTH:
            lines.append("  ")
        lines[-1], run = lines[-1] + run, ""
    return [line.rstrip() for line in lines if line]
