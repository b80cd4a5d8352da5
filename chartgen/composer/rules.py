"""Rules of `rules.yaml`: what a chart refuses and `chartgen check` reports, from one text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.composer.definition import (
    definition_schema,
    file_in,
    has_file,
    is_builtin,
    misfits,
    one_line_texts,
    record_of,
)
from chartgen.composer.expressions import ExpressionError, fields, parse_expression
from chartgen.composer.library import BUILTIN
from chartgen.composer.policies import Policy, rule_rows
from chartgen.composer.target import Target
from chartgen.errors import ChartgenError, Problem, refuse
from chartgen.findings import Severity
from chartgen.helm.yaml import Document, Keys, load_file, type_name

FILE = "rules.yaml"
COMMON = BUILTIN / "workloads" / "common"
TASKS = ("train", "data", "test")
EXPRESSIONS = ("each", "when", "require")
_TEXTS = ("key", "message", "hint")
_SHARED = ("meaning", "source", "tasks", "about", "severity")


# By identity, since files are read once: what is computed of rules is cached by them.
@dataclass(frozen=True, eq=False)
class ValuesRule:
    """One rule; its other fields are the keys of rules.yaml."""

    document: Document  # the file that it is from
    at: Keys  # its place in that file
    id: str
    require: str
    key: str
    message: str
    hint: str
    meaning: str = ""
    source: str = ""
    severity: Severity = "error"
    tasks: tuple[str, ...] = ()
    about: str = ""
    each: str = ""
    when: str = ""
    also: tuple[str, ...] = ()
    launcher: str = ""  # the launcher that it belongs to; empty for all

    def texts(self) -> Iterator[tuple[Keys, str]]:
        """Yield the texts with expressions in braces, each with its place in the rule."""
        yield from (((field,), getattr(self, field)) for field in ("key", "message", "hint"))
        yield from ((("also", number), text) for number, text in enumerate(self.also))

    def problem(self, at: Keys, error: ExpressionError) -> Problem:
        """Return what is wrong with an expression of the rule, at the place of its text."""
        place = self.document.text_position((*self.at, *at), error.column - 1)
        return Problem(f"{at[0]} of rule {self.id}: {error.message}", self.document.path, *place, error.hint)


def rules_of(target: Target, workload: Iterable[Path], launcher: str = "") -> list[ValuesRule]:
    """Return the rules of a target's charts: common ones, the launchers', the kind's, the fragments', the policies'.

    Args:
        workload: The folders of the workload kind.
        launcher: Leave out the rules of all launchers but this one; empty = none.

    Raises:
        ChartgenError: A file that is not as it should be.
    """
    found = [*read_rules(COMMON)]
    for each in target.launchers:
        found += read_rules(each.path, each.name) if launcher in ("", each.name) else ()
    for folder in workload:
        found += read_rules(folder)
    for fragment in target.fragments:
        found += read_rules(fragment.path, tasks=("train", "test") if fragment.gpu_only else TASKS)
    for policy in target.policies:
        found += policy_rules(policy)
    refuse(_clashes(found))
    return found


def _clashes(rules: Iterable[ValuesRule]) -> Iterator[Problem]:
    """Report ids of users' rules that mean something else in another file; copies of a file are allowed."""
    first: dict[str, ValuesRule] = {}
    for rule in rules:
        known = first.setdefault(rule.id, rule)
        if known.meaning == rule.meaning or known.document.path == rule.document.path:
            continue
        if not is_builtin(Path(rule.document.path)):
            yield rule.document.problem(
                f"there is already a rule {rule.id} in {known.document.path}", (*rule.at, "id"), "choose another id"
            )


def builtin_rules() -> list[ValuesRule]:
    """Return all rules of chartgen's own files."""
    found: list[ValuesRule] = []
    for path in sorted(BUILTIN.rglob(FILE)):
        found += read_rules(path.parent, path.parent.name if path.parent.parent.name == "launchers" else "")
    return found


def read_rules(folder: Path, launcher: str = "", tasks: tuple[str, ...] = TASKS) -> tuple[ValuesRule, ...]:
    """Return the rules of one folder; none if it has no file of rules.

    Args:
        launcher: The launcher that the rules belong to; empty for all.
        tasks: The tasks that the folder applies to at all.

    Raises:
        ChartgenError: Unknown keys, wrong types, and expressions that are none, all at once.
    """
    if not has_file(folder, FILE):
        return ()
    path = file_in(folder, FILE)
    state = None if is_builtin(path) else path.stat()
    return _read(path, launcher, tasks, state and (state.st_mtime_ns, state.st_size))


@lru_cache(maxsize=256)
def _read(path: Path, launcher: str, tasks: tuple[str, ...], _state: tuple[int, int] | None) -> tuple[ValuesRule, ...]:
    document = load_file(path)
    if not isinstance(document.data, list):
        raise ChartgenError(Problem(f"must be a list of rules, not {type_name(document.data)}", path, 1, 1))
    return _rules(document, [((index,), row) for index, row in enumerate(document.data)], launcher, tasks)


@lru_cache(maxsize=64)
def policy_rules(policy: Policy) -> tuple[ValuesRule, ...]:
    """Return the rules of a policy, each of which names it; raise the errors of `read_rules`."""
    rows = [(at, _named(row, policy.name)) for at, row in rule_rows(policy)]
    return _rules(policy.document, rows, "", TASKS)


def _named(row: Any, policy: str) -> Any:
    """Return a row of a policy: what it refuses is the policy's."""
    if not isinstance(row, dict) or not isinstance(message := row.get("message"), str):
        return row
    return {"source": f"policy {policy}", **row, "message": f"{message} [policy {policy}]"}


def _rules(
    document: Document, rows: list[tuple[Keys, Any]], launcher: str, tasks: tuple[str, ...]
) -> tuple[ValuesRule, ...]:
    refuse(_misfits(document, rows))
    first: dict[str, dict[str, Any]] = {}
    rules = []
    for at, row in rows:
        shared = first.setdefault(row["id"], {key: row[key] for key in _SHARED if key in row})
        texts: dict[str, Any] = one_line_texts({**shared, **row})
        own = tuple(task for task in texts.get("tasks", tasks) if task in tasks)
        rules.append(record_of(ValuesRule, texts, tasks=own, document=document, at=at, launcher=launcher))
    if not is_builtin(Path(document.path)) and (problems := list(_faults(rules))):
        raise ChartgenError(problems)
    return tuple(rules)


def _misfits(document: Document, rows: list[tuple[Keys, Any]]) -> Iterator[Problem]:
    explained, described = set(), definition_schema("rule")["properties"]
    for at, row in rows:
        if not isinstance(row, dict):
            yield document.problem(f"a rule must be a map, not {type_name(row)}", at)
            continue
        yield from misfits(document, row, "rule", at)
        for key in ("meaning", "source"):
            if row.get("id") not in explained and key not in row:
                yield document.problem(f"the key {key!r} is missing", at, f"add it: {described[key]['description']}")
        explained.add(row.get("id"))


def _faults(rules: Iterable[ValuesRule]) -> Iterator[Problem]:
    """Report expressions that cannot be parsed; names and types are checked with the schema of a chart."""
    for rule in rules:
        every: list[tuple[Keys, str, Callable[[str], object]]] = [
            ((field,), text, parse_expression) for field in EXPRESSIONS if (text := getattr(rule, field))
        ]
        every += [(at, text, lambda text: list(fields(text))) for at, text in rule.texts()]
        for at, text, read in every:
            try:
                read(text)
            except ExpressionError as error:
                yield rule.problem(at, error)
