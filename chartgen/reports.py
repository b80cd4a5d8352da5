"""Write findings as text for people, and in formats of CI systems: JSON, SARIF, JUnit, GitHub's workflow commands."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from chartgen import __version__
from chartgen.answers import answer
from chartgen.findings import Finding, Level, Rule, Severity
from chartgen.visible import harmless, one_line, visible

Writer: TypeAlias = "Callable[[Sequence[Finding], str], str]"
FINDINGS = "findings/v1"

_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_PROBLEMS: tuple[Severity, ...] = ("error", "warning")
# SARIF 2.1.0, sections 3.27.9 and 3.27.10: a result that is not a failure has no level.
_SARIF_LEVELS = {"error": "error", "warning": "warning", "unchecked": "none"}
# Compiled on first use: each takes half a millisecond, which would delay every command.
# Characters that XML 1.0 forbids, even escaped (https://www.w3.org/TR/xml/#charsets).
_NOT_XML = "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]"


class FindingRow(NamedTuple):
    """A finding in JSON."""

    rule: str  # stable id of the check
    # An error rejects the job or the chart; a warning is only shown; `unchecked`: the check could not run
    severity: Severity
    level: Level  # whether it breaks a release or only deviates from good practice
    message: str  # what is wrong
    line: int | None  # line of the file, from 1
    column: int | None  # column of the line, from 1
    path: str = ""  # the file, below the working directory if it lies there, or the flag with the value
    hint: str = ""  # what to do instead
    key: str = ""  # dotted key of the value to change


def format_findings(
    findings: Sequence[Finding], form: str, *, checked: str, rules: Callable[[], Iterable[Rule]] = tuple
) -> str:
    """Return findings in one of the formats.

    Args:
        findings: The findings in output order: by place, as in compilers, not by severity.
        form: One of `FORMS`.
        checked: The subject of the check, such as the target's name; it names the run and heads the counts.
        rules: Returns the rules that SARIF describes.

    Returns:
        Text that ends with a line break, or empty text; paths below the working directory are relative to it.
    """
    masked = [finding._replace(problem=finding.problem.masked) for finding in findings]
    return _sarif(masked, checked, rules()) if form == "sarif" else _WRITERS[form](masked, checked)


def line_of(finding: Finding) -> str:
    """Return a finding without its place as one line; its content cannot break the line."""
    return one_line(f"{_sentence(finding)} [{finding.rule}]")


def finding_path(finding: Finding) -> str:
    """Return the file of a finding, below the working directory when it lies there; empty for none."""
    return one_line(_path(finding))


def _text(findings: Sequence[Finding], checked: str) -> str:
    return "".join(f"{line}\n" for line in (*map(_line, findings), f"{one_line(checked)}: {counts(findings)}"))


def _json(findings: Sequence[Finding], _checked: str) -> str:
    return _dumped(answer(FINDINGS, {"findings": list(map(_row, findings))}))


def _sarif(findings: Sequence[Finding], checked: str, known: Iterable[Rule]) -> str:
    rules = sorted({finding.rule for finding in findings})
    described = _sarif_rules(rules, findings, {rule.id: rule for rule in known})
    driver = {"name": "chartgen", "semanticVersion": __version__, "rules": described}
    run = {
        "tool": {"driver": driver},
        # CI systems keep these apart, so that the findings of two targets do not replace each other.
        "automationDetails": {"id": f"chartgen/{checked}/"},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(finding, rules.index(finding.rule)) for finding in findings],
    }
    return _dumped({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def _sarif_rules(rules: Iterable[str], findings: Sequence[Finding], known: Mapping[str, Rule]) -> list[dict[str, Any]]:
    described = []
    for rule in rules:
        entry = known.get(rule)
        one = next(finding for finding in findings if finding.rule == rule)
        meaning, remedy = (entry.meaning, entry.remedy) if entry else (rule, "See the message of each result.")
        texts = {"shortDescription": {"text": meaning}, "help": {"text": f"{meaning}\n\n{remedy}"}}
        known_as = {"defaultConfiguration": {"level": _SARIF_LEVELS[one.severity]}, "properties": {"level": one.level}}
        described.append({"id": rule, **texts, **known_as})
    return described


def _sarif_result(finding: Finding, index: int) -> dict[str, Any]:
    problem = finding.problem
    location: dict[str, Any] = {}
    if _is_file(finding):
        region = {"startLine": problem.line, "startColumn": problem.column}
        physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(_path(finding))}}
        physical |= {"region": {name: number for name, number in region.items() if number}} if problem.line else {}
        location["physicalLocation"] = physical
    if finding.key:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.key}]
    result = {"ruleId": finding.rule, "ruleIndex": index, "level": _SARIF_LEVELS[finding.severity]}
    # "the tool concluded that there was insufficient information to decide" (3.27.9)
    result |= {"kind": "open"} if finding.severity == "unchecked" else {}
    return {**result, "message": {"text": _message(finding)}} | ({"locations": [location]} if location else {})


def _junit(findings: Sequence[Finding], checked: str) -> str:
    """Write a test case for each file and rule with findings; an error fails it, and an unchecked rule is skipped."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((_path(finding) or checked, finding.rule), []).append(finding)
    failed = sum(map(_fails, groups.values()))
    numbers = {"tests": len(groups) or 1, "failures": failed}
    numbers |= {"skipped": skipped} if (skipped := sum(map(_is_skipped, groups.values()))) else {}
    suite = " ".join(f"{name}={_attribute(value)}" for name, value in {"name": checked, **numbers}.items())
    passed = f"    <testcase classname={_attribute(checked)} name={_attribute('check')}/>\n"
    cases = "".join(_junit_case(*group) for group in groups.items()) or passed
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    return harmless(f"{head}\n<testsuites>\n  <testsuite {suite}>\n{cases}  </testsuite>\n</testsuites>\n")


def _junit_case(place: tuple[str, str], findings: Sequence[Finding]) -> str:
    from xml.sax.saxutils import escape

    # each finding has its own line: its content must not begin one, since a CI runner might obey it
    breaks = {"\r": "&#13;", "\n": "&#10;"}
    lines = "\n".join(escape(_printable(f"{_where(finding)}{_sentence(finding)}"), breaks) for finding in findings)
    text = re.sub(_NOT_XML, _escaped, lines)
    message = f" message={_attribute(_sentence(findings[0]))} type={_attribute(place[1])}"
    inside = f"<failure{message}>{text}</failure>" if _fails(findings) else f"<system-out>{text}</system-out>"
    if _is_skipped(findings):
        inside = f"<skipped message={_attribute(_sentence(findings[0]))}/>"
    head = f"classname={_attribute(place[0])} name={_attribute(place[1])}"
    return f"    <testcase {head}>\n      {inside}\n    </testcase>\n"


def _github(findings: Sequence[Finding], _checked: str) -> str:
    """Write workflow commands; the runner undoes this escaping (actions/toolkit, packages/core/src/command.ts)."""
    lines = []
    for finding in findings:
        place = {"line": finding.problem.line, "col": finding.problem.column} if finding.problem.line else {}
        properties = {"file": _path(finding), **place} if _is_file(finding) else {}
        parameters = {**{name: value for name, value in properties.items() if value}, "title": finding.rule}
        pairs = ",".join(f"{name}={_command(str(value), ':,')}" for name, value in parameters.items())
        command = "error" if finding.severity == "error" else "warning"
        lines.append(f"::{command} {pairs}::{_command(_message(finding))}\n")
    return "".join(lines)


_WRITERS: dict[str, Writer] = {
    "text": _text,
    "json": _json,
    "junit": _junit,
    "github": _github,
}
FORMS = (*_WRITERS, "sarif")


def _line(finding: Finding) -> str:
    severity = "" if finding.severity == "error" else f"{finding.severity}: "
    return one_line(f"{_where(finding)}{severity}{_sentence(finding)} [{finding.rule}]")


def _row(finding: Finding) -> FindingRow:
    return FindingRow(
        rule=finding.rule,
        severity=finding.severity,
        level=finding.level,
        path=_path(finding),
        line=finding.problem.line or None,
        column=finding.problem.column or None,
        message=finding.problem.message,
        hint=finding.problem.hint,
        key=finding.key,
    )


def counts(findings: Sequence[Finding]) -> str:
    """Return the number of errors, warnings and checks that could not run."""
    numbers = Counter(finding.severity for finding in findings)
    parts = [f"{number} {name}{'s' if number > 1 else ''}" for name in _PROBLEMS if (number := numbers[name])]
    parts += [f"{numbers['unchecked']} unchecked"] if numbers["unchecked"] else []
    return ", ".join(parts) or "no findings"


def _fails(findings: Iterable[Finding]) -> bool:
    return any(finding.severity == "error" for finding in findings)


def _is_skipped(findings: Sequence[Finding]) -> bool:
    return all(finding.severity == "unchecked" for finding in findings)


def _sentence(finding: Finding) -> str:
    problem = finding.problem
    return f"{problem.message}; {problem.hint}" if problem.hint else problem.message


def _message(finding: Finding) -> str:
    """Return message and hint; if a flag is at fault, after the flag, since formats can only point at files."""
    flag = "" if _is_file(finding) else _path(finding)
    return f"{flag}: {_sentence(finding)}" if flag else _sentence(finding)


def _where(finding: Finding) -> str:
    numbers = [number for number in (finding.problem.line, finding.problem.column) if number]
    place = ":".join(map(str, [_path(finding), *numbers]))
    return f"{place}: " if _path(finding) else ""


def _is_file(finding: Finding) -> bool:
    path = finding.problem.path
    return isinstance(path, Path) or bool(path and not path.startswith("--"))


def _path(finding: Finding) -> str:
    """Return the path below the working directory if it lies there; a flag unchanged, and empty for no place."""
    path = finding.problem.path or ""
    if Path(path).is_absolute():
        with suppress(ValueError):
            return Path(path).relative_to(Path.cwd()).as_posix()
    return str(path)


def _uri(path: str) -> str:
    from urllib.parse import quote

    return ("file://" if path.startswith("/") else "") + quote(path.encode("utf-8", "surrogateescape"))


def _printable(text: str) -> str:
    r"""Write surrogates, which come from bytes of the command line, as \udc80: no encoding has them."""
    return text.encode("utf-8", "backslashreplace").decode()


def _attribute(value: object) -> str:
    from xml.sax.saxutils import quoteattr

    return re.sub(_NOT_XML, _escaped, quoteattr(_printable(str(value))))


def _command(text: str, more: str = "") -> str:
    escaped = visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))
    return re.sub(f"[{more}]", lambda match: f"%{ord(match[0]):02X}", escaped) if more else escaped


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _dumped(data: Any) -> str:
    return harmless(json.dumps(data, indent=2)) + "\n"  # the same data: escapes are written as JSON escapes
