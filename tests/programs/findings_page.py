"""The page docs/reference/findings.md: every kind of finding, what it means and what to do."""

from __future__ import annotations

from chartgen.findings import ELLIPSIS, Rule
from chartgen.linter.catalogue import catalogue, rules_of_lint
from chartgen.linter.rules import level_of

_HEAD = f"""\
# Findings

Every finding is one line: `path:line:column: what is wrong; what to do instead [id]`. An **error** refuses the job
or the chart (exit 1), a **warning** is only shown. **Unchecked** reports a check that chartgen could not make, and
what would make it possible; if nothing at all can be checked, the command exits with 3. Below, `{ELLIPSIS}` replaces
numbers and names of your own job.
"""
_SECTIONS = {
    "Values": "The schema of a chart's values; chartgen checks it before everything else.",
    "YAML": "Keys and values that Helm reads otherwise than they are written.",
    "Jobs": "Problems that keep a job from running, found before it occupies machines.",
    "Charts": (
        "What `chartgen lint` finds in a chart and in what it renders. Level `breaks` is reported of every chart;\n"
        "level `style` is good practice, reported of charts of chartgen, and with `--level style` of all charts."
    ),
    "Values of other charts": "What `chartgen lint FILE` finds in values files of charts that people wrote by hand.",
}


def findings_page() -> str:
    """Return the page in Markdown, without a mark of its generator."""
    text, of_lint = _HEAD, {rule.id for rule in rules_of_lint()}
    for section, found in catalogue().items():
        text += f"\n## {section}\n\n{_SECTIONS[section]}\n"
        text += "".join(_page(rule, of_lint=rule.id in of_lint) for rule in found)
    return text


def _page(rule: Rule, *, of_lint: bool) -> str:
    source = f"- Source: {rule.source}\n" if rule.source else ""
    level = f"- Level: {level_of(rule.id)}\n" if of_lint else ""
    facts = f"- Severity: {rule.severity}\n{level}- What to do: {rule.remedy}\n{source}"
    return f"\n### {rule.id}\n\n{rule.meaning}\n\n{facts}"
