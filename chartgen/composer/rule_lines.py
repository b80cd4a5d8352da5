"""The lines of a chart's `_validate.tpl` that its rules make, one for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from chartgen.composer.expressions import ExpressionError
from chartgen.composer.rule_template import Translator, go_string
from chartgen.composer.rules import TASKS, ValuesRule
from chartgen.errors import ChartgenError, Problem


class Line(NamedTuple):
    """One line, and the file and line of the rule that it comes from."""

    text: str
    path: Path
    line: int


def rule_lines(
    chart: str, rules: Sequence[ValuesRule], schema: Mapping[str, Any], launchers: Mapping[str, str]
) -> list[Line]:
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
    lines: list[Line] = []
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
) -> Iterator[Line]:
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
            told = translator.message(f"{rule.key}: {rule.message}; {rule.hint}")
            place = Path(rule.document.path), rule.document.position((rule.index,))[0]
            yield Line(_line(told, **{field: parts[field] for field in make}), *place)


def _line(told: str, each: str, when: str, require: str) -> str:
    """Return the line that refuses what breaks a rule."""
    condition = f"(and {when} {require})" if when else require
    condition = condition[1:-1] if condition.startswith("(") else condition
    line = f"{{{{- if {condition} }}}}{{{{ $problems = append $problems {told} }}}}{{{{ end }}}}"
    return (
        f"{{{{- range $each := {each[1:-1] if each.startswith('(') else each} }}}}{line}{{{{- end }}}}"
        if each
        else line
    )
