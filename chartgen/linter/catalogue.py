"""Every kind of finding: its meaning, what to do about it, and its source."""

from __future__ import annotations

from collections.abc import Iterable

from chartgen.checks import CHECKS, SCHEMA
from chartgen.checks.automatic import FITTING
from chartgen.checks.site_file import PLACEHOLDER, SITE
from chartgen.checks.yaml_pitfalls import PITFALLS
from chartgen.composer.expressions import fields
from chartgen.composer.rules import ValuesRule, builtin_rules
from chartgen.findings import ELLIPSIS, NOT_OURS, REFUSED, TARGET_UNKNOWN, Rule
from chartgen.linter.handwritten import HANDWRITTEN
from chartgen.linter.rules import RULES, STEP_RULES

# Findings that do not come from a single function.
_VALUES = (
    Rule(
        SCHEMA,
        "The values do not fit the chart's schema: an unknown key, a wrong type, or a value out of range.",
        "write the value as the finding asks, or the key that it names; only unknown keys leave the rest checked",
        "values.schema.json of the chart",
    ),
    SITE,
    PLACEHOLDER,
)
_JOBS = (
    FITTING,
    Rule(
        REFUSED,
        "A rule of one of the chart's fragments, of its launcher or of its workload kind refuses the values.",
        "follow the finding; it appears once all others are fixed",
        "validate.tpl of fragments, launchers and workload kinds",
    ),
    Rule(
        TARGET_UNKNOWN,
        "The chart is of a target that is in no known folder, so chartgen cannot check its job.",
        "give the folder with the target with `--path` or CHARTGEN_PATH",
        severity="unchecked",
    ),
    Rule(
        NOT_OURS,
        "The chart is not from chartgen: only its schema is checked, because its values have no known meaning.",
        "use the tools of that chart; `chartgen lint` checks its manifests",
        severity="unchecked",
    ),
)


def catalogue() -> dict[str, list[Rule]]:
    """Return every kind of finding by id, grouped by the sections of the reference."""
    tables = {
        "Values": _VALUES,
        "YAML": PITFALLS,
        "Jobs": _merged([*_JOBS, *map(_described, builtin_rules()), *CHECKS]),
        "Charts": (*STEP_RULES, *RULES),
        "Values of other charts": HANDWRITTEN,
    }
    return {section: sorted(rules, key=lambda rule: rule.id) for section, rules in tables.items()}


def _described(rule: ValuesRule) -> Rule:
    key, hint = (
        "".join(part if node is None else ELLIPSIS for part, node in fields(text)) for text in (rule.key, rule.hint)
    )
    remedy = f"`{key}`: {hint}" if key.strip(f".{ELLIPSIS}") else hint
    return Rule(rule.id, rule.meaning, remedy, rule.source, rule.severity)


def _merged(rules: Iterable[Rule]) -> list[Rule]:
    """Join rules of one id: the first one's meaning, and the remedies and sources of all."""
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        found.setdefault(rule.id, []).append(rule)
    return [
        every[0]._replace(
            remedy="; ".join(dict.fromkeys(rule.remedy for rule in every)),
            source="; ".join(dict.fromkeys(rule.source for rule in every)),
        )
        for every in found.values()
    ]


def known_rules() -> list[Rule]:
    """Return every rule that a finding of `check` or `lint` may name."""
    return [rule for rules in catalogue().values() for rule in rules]


def rules_of_lint() -> list[Rule]:
    """Return the rules of `chartgen lint` for charts and for third-party values files."""
    found = catalogue()
    return [*found["Charts"], *found["Values of other charts"]]
