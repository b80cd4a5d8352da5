"""The lines of a chart's `_validate.tpl` that its rules make, one for each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from chartgen.composer.expressions import ExpressionError
from chartgen.composer.rule_template import Translator, go_string
from chartgen.composer.rules import TASKS, ValuesRule
from chartgen.errors import ChartgenError, Problem

_WIDTH = 160  # as editors and reviews show
_STRING = re.compile(r'"((?:\\.|[^"\\])*)"')
# With the functions that it is an argument of: a line does not end in them.
_WORD = re.compile(r'(?:\(\w+ )*(?:"(?:\\.|[^"\\])*"|[^\s"])+')
_PART = re.compile(r".{1,120}(?: |$)|\S+ ?")


class RuleLine(NamedTuple):
    """One line, and the file and line of the rule that it comes from."""

    text: str
    path: Path
    line: int


def rule_lines(
    chart: str, rules: Sequence[ValuesRule], schema: Mapping[str, Any], launchers: Mapping[str, str]
) -> list[RuleLine]:
    """Return the lines of a template that rules make, those that are only warnings left out.

    Args:
        chart: The chart's name.
        rules: Its rules.
        schema: The schema of its values.
        launchers: Launcher -> its task, of those that the chart offers.

    Raises:
        ChartgenError: Unknown names and types that do not fit, all at once.
    """
    problems: list[Problem] = []
    lines: list[RuleLine] = []
    for guard, group in groupby(rules, key=lambda rule: _guard(rule, launchers)):
        found = list(_translated(chart, list(group), schema, next(iter(launchers)), problems))
        if found and guard:
            found = [found[0]._replace(text=f"{{{{- if {guard} }}}}"), *found, found[-1]._replace(text="{{- end }}")]
        lines += found
    if problems:
        raise ChartgenError(problems)
    return lines


def _guard(rule: ValuesRule, launchers: Mapping[str, str]) -> str:
    """Return the condition that a rule's place, tasks and subject make."""
    whose = ""
    if rule.launcher:
        whose = f"eq $v.launcher {go_string(rule.launcher)}"
    elif not set(rule.tasks) >= set(launchers.values()):
        whose = f"eq $fact.launcher.task {' '.join(map(go_string, (task for task in TASKS if task in rule.tasks)))}"
    if not rule.about:
        return whose
    return f"and ({whose}) $fact.describesModel" if whose else "$fact.describesModel"


def _translated(
    chart: str, rules: Sequence[ValuesRule], schema: Mapping[str, Any], launcher: str, problems: list[Problem]
) -> Iterator[RuleLine]:
    for rule in rules:
        translator = Translator(chart, schema, rule.launcher or launcher)
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
    """Return the actions that refuse what breaks a rule, on one line where they fit."""
    condition = _bare(f"(and {when} {require})" if when else require)
    actions = [f"{{{{- if {condition} }}}}", f"{{{{- $problems = append $problems {refusal} }}}}{{{{- end }}}}"]
    if each:
        actions = [f"{{{{- range $each := {_bare(each)} }}}}", *actions, "{{- end }}"]
    line = "".join(actions)
    return [line] if len(line) <= _WIDTH else [line for action in actions for line in _wrapped(action)]


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(") else text


def _wrapped(action: str) -> list[str]:
    """Break an action between its words, and a long text into several."""
    lines = [""]
    for word in _WORD.findall(_STRING.sub(_print, action)):
        if lines[-1] and len(lines[-1]) + len(word) >= _WIDTH:
            lines.append(" ")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


def _print(text: re.Match[str]) -> str:
    """Return a text as `(print "..." "...")`, which adds no blanks between texts."""
    parts = _PART.findall(text[1])
    return f"""(print {" ".join(f'"{part}"' for part in parts)})""" if len(parts) > 1 else text[0]
