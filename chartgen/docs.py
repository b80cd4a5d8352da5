"""What is generated for readers: JSON Schemas for editors, and the reference of all findings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chartgen import fragment, launcher, target, workload
from chartgen.chart import Chart
from chartgen.checks import CHECKS, SCHEMA
from chartgen.definition import json_schema
from chartgen.findings import NOT_OURS, REFUSED, TARGET_UNKNOWN
from chartgen.linter.handwritten import HANDWRITTEN
from chartgen.linter.rules import RULES, STEP_RULES
from chartgen.yamltext import read_text
from chartgen.yamltraps import TRAPS

if TYPE_CHECKING:
    import ast

    from chartgen.findings import Severity

_DEFINITIONS = {
    "target": target.FIELDS,
    "fragment": fragment.FIELDS,
    "launcher": launcher.FIELDS,
    "workload": workload.FIELDS,
}
# Where the hint stands among the arguments of what rules and checks yield.
_HINTS = {"Claim": 2, "Complaint": 1}
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_ASK_THE_FINDING = "change the value that the finding names; the finding says to what"
_HEAD = f"""\
<!-- Generated from the checks themselves by `make charts`; do not edit. -->
# Findings

Every finding is one line: `path:line:column: what is wrong; what to do instead [id]`. An **error** refuses the job
or the chart (exit 1), a **warning** is only shown. **Unchecked** says that a check could not be made, and what would
make it possible; where it leaves the whole question open, the command exits with 3. Below, `{_ELLIPSIS}` stands for
numbers and names of your own job.
"""
_SECTIONS = {
    "Values": "What every values file must keep to before anything else is looked at.",
    "YAML": "Keys and values that Helm reads otherwise than they are written.",
    "Jobs": "What keeps a job from running, found before machines are held.",
    "Charts": "What `chartgen lint` finds in a chart and in what it renders.",
    "Values of others": "What `chartgen lint FILE` finds in values files of charts that people wrote by hand.",
}


@dataclass(frozen=True)
class Entry:
    """What a reader must know of one kind of finding.

    Args:
        id: The stable id.
        section: A key of the reference's sections.
        meaning: What is looked for, and why.
        remedy: What to do.
        source: Where the limit comes from; empty when it is chartgen's own.
        severity: Whether it refuses or only warns.
    """

    id: str
    section: str
    meaning: str
    remedy: str
    source: str = ""
    severity: Severity = "error"


# Findings of whole steps, which no single function stands for.
_STEPS = (
    Entry(
        SCHEMA,
        "Values",
        "The values do not fit the chart's schema: an unknown key, a wrong type, or a value out of range.",
        "write the value as the finding asks, or the key that it names; while one is left, nothing else is checked",
        "values.schema.json of the chart",
    ),
    Entry(
        REFUSED,
        "Jobs",
        "A rule of one of the chart's fragments, of its launcher or of its workload kind refuses the values.",
        "do what the finding says; such rules are told once nothing else is wrong",
        "validate.tpl of each fragment, launcher and workload kind",
    ),
    Entry(
        TARGET_UNKNOWN,
        "Jobs",
        "The chart was made of a target that no folder here holds, so that its job cannot be checked.",
        "give the folder with the target with `--path` or CHARTGEN_PATH",
        severity="unchecked",
    ),
    Entry(
        NOT_OURS,
        "Jobs",
        "The chart is not of chartgen: its schema is checked, and what its values ask for is not known.",
        "use the tools of that chart; `chartgen lint` looks at its manifests",
        severity="unchecked",
    ),
)


def schemas(charts: Iterable[Chart]) -> dict[str, str]:
    """Give the published schemas, file name -> text: one per kind of definition file, one per chart's values."""
    files = {
        f"{name}.schema.json": json.dumps(json_schema(f"chartgen {name}", fields), indent=2) + "\n"
        for name, fields in _DEFINITIONS.items()
    }
    return files | {f"{chart.name}.values.schema.json": chart.files["values.schema.json"] for chart in charts}


def catalogue() -> list[Entry]:
    """Give every kind of finding, by section and id."""
    found = [*_STEPS]
    found += [Entry(each.id, "YAML", _meaning(each.rule), _remedy(each.rule), "", each.severity) for each in TRAPS]
    found += [
        Entry(each.id, "Jobs", _meaning(each.rule), _remedy(each.rule), each.source, each.severity) for each in CHECKS
    ]
    found += [Entry(each.id, "Charts", each.meaning, each.remedy, each.source, each.severity) for each in STEP_RULES]
    found += [
        Entry(each.id, "Charts", _meaning(each.check), _remedy(each.check), each.source, each.severity)
        for each in RULES
    ]
    found += [
        Entry(each.id, "Values of others", _meaning(each.rule), _remedy(each.rule), each.source, each.severity)
        for each in HANDWRITTEN
    ]
    return sorted(found, key=lambda entry: (list(_SECTIONS).index(entry.section), entry.id))


def reference() -> dict[str, str]:
    """Give the generated pages of the reference, file name -> text."""
    entries = catalogue()
    text = _HEAD
    for section, introduction in _SECTIONS.items():
        text += f"\n## {section}\n\n{introduction}\n"
        text += "".join(map(_page, (entry for entry in entries if entry.section == section)))
    return {"findings.md": text}


def stale(files: dict[str, str], folder: Path) -> list[Path]:
    """Name the files of a folder that differ from what they should hold, or that should not be there."""
    there = set(folder.glob("*.json"))
    wrong = {path for name, text in files.items() if not (path := folder / name).is_file() or read_text(path) != text}
    return sorted(wrong | (there - {folder / name for name in files}))


def write(files: dict[str, str], folder: Path) -> None:
    """Write files into a folder, and remove the schemas in it that are no longer published."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in stale(files, folder):
        if path.name in files:
            path.write_text(files[path.name], encoding="utf-8", newline="\n")
        else:
            path.unlink()


def _page(entry: Entry) -> str:
    source = f"- Source: {entry.source}\n" if entry.source else ""
    return (
        f"\n### {entry.id}\n\n{entry.meaning}\n\n- Severity: {entry.severity}\n- What to do: {entry.remedy}\n{source}"
    )


def _meaning(rule: Callable[..., object]) -> str:
    return " ".join((rule.__doc__ or "").split())


def _remedy(rule: Callable[..., object]) -> str:
    """Give the hints that a rule can yield, read from its code, where they stand beside the limit they belong to."""
    import ast

    names, told = rule.__globals__, []
    calls = [node for node in ast.walk(_parsed(rule)) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda node: node.lineno):
        name = getattr(call.func, "id", "")
        if name in _HINTS:
            keys = _spelled(call.args[0], names) if name == "Claim" else ()
            hints = " or ".join(hint for node in _hint(call, _HINTS[name]) for hint in _spelled(node, names))
            told += [": ".join([*(f"`{key}`" for key in keys if key.strip(f".{_ELLIPSIS}")), hints])] if hints else []
    return "; ".join(dict.fromkeys(told)) or _ASK_THE_FINDING


def _hint(call: ast.Call, at: int) -> list[ast.expr]:
    return [each.value for each in call.keywords if each.arg == "hint"] or call.args[at : at + 1]


def _spelled(node: ast.expr, names: Mapping[str, Any]) -> Iterator[str]:
    """Spell out an expression that gives a text; what is known only of a job becomes an ellipsis.

    Args:
        node: The expression.
        names: What the code around it knows, to look into the functions that make a hint.
    """
    import ast
    from inspect import isfunction

    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.JoinedStr):
        parts = [str(part.value) if isinstance(part, ast.Constant) else _ELLIPSIS for part in node.values]
        yield "".join(parts).replace(_ELLIPSIS * 2, _ELLIPSIS)
    elif isinstance(node, ast.IfExp):
        yield from (*_spelled(node.body, names), *_spelled(node.orelse, names))
    elif isinstance(node, ast.Call) and isfunction(helper := names.get(getattr(node.func, "id", ""))):
        for each in ast.walk(_parsed(helper)):
            if isinstance(each, ast.Return) and each.value is not None:
                yield from _spelled(each.value, {})


def _parsed(function: Callable[..., object]) -> ast.Module:
    import ast
    import inspect

    return ast.parse(inspect.getsource(function))
