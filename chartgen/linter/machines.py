"""Values that lint makes for a target: its defaults, or its site file's example, for two machines of each type."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from chartgen.checks import check, effective_values, place
from chartgen.composer.origin import Composed, origin_of
from chartgen.errors import ChartgenError, MissingToolError, Problem, did_you_mean
from chartgen.findings import NOT_RENDERED, Finding, Rule
from chartgen.helm import gotemplate
from chartgen.helm.chart import Chart
from chartgen.helm.values import Values, load_values
from chartgen.helm.yaml import Plain, read_text
from chartgen.linter.sources import fragment_texts, is_users

ONE_MACHINE = Rule(
    "several-machines-are-rendered",
    "A target without presets has defaults that allow one machine only, and one machine uses no network.",
    "give values for several machines, with -f or as presets; or a target whose defaults allow them",
    severity="unchecked",
)
SEVERAL = "nodes=2"
EACH_TYPE = Rule(
    "machine-types-are-rendered",
    "Lint renders each machine type of a target, for two machines or one; the defaults refuse this type.",
    "keep values for it as a preset that sets machineType, or pass them with -f",
    severity="unchecked",
)


def refused_defaults(chart: Chart) -> Finding | None:
    """Return why a run chart of a target refuses its own defaults; None for other charts.

    Each site must set such a value, so that nothing is wrong with the chart.
    """
    error = _first_error(chart, load_values())
    if not error:
        return None
    name = f"site.{origin_of(chart).name}.example.yaml"
    hint = f"give your site file with -f, or keep an example beside targets/, as values/{name}"
    message = f"the defaults lack a value that each site must set: {error.problem.message}"
    return Finding(NOT_RENDERED, error.problem._replace(message=message, hint=hint), "unchecked", error.key)


class OwnValues(NamedTuple):
    """Values that lint makes, with their name, and whether one render is enough."""

    name: str
    values: Values
    once: bool = False


def own_values(
    chart: Chart, started: Sequence[dict[str, Plain]], site: Path | None = None, *, presets: bool = False
) -> Iterator[OwnValues | Finding]:
    """Yield values for two machines, and for each machine type of a target; a finding where a run chart refuses them.

    Args:
        started: Values that are rendered anyway: their machine types are left out if they have several machines.
        site: A site file that the chart needs besides its defaults.
        presets: Whether the chart has presets, which have several machines.
    """
    origin = origin_of(chart)
    if not isinstance(origin, Composed) or origin.setup:
        return
    files, given = [site] if site else [], list(started)
    if not presets:
        values = load_values(files, set_values=[SEVERAL])
        if error := _first_error(chart, values):
            message = f"lint renders one machine only, because the defaults refuse two: {error.problem.message}"
            problem = Problem(message, *place(chart, load_values(), ("nodes",)), ONE_MACHINE.remedy)
            yield Finding(ONE_MACHINE.id, problem, "unchecked", "nodes")
        else:
            given.append(values.data)
            yield OwnValues(SEVERAL, values)
    known = [_machines(chart, each) for each in given]
    alone, several = ({name for name, count in known if count > least} for least in (0, 1))
    for name in origin.target.machines if all(name for name, _ in known) else ():
        if name not in several and (found := _machine_type(chart, name, files, alone)):
            yield found


def _machine_type(chart: Chart, name: str, files: Sequence[Path], alone: Collection[str]) -> OwnValues | Finding | None:
    """Return values for two machines of a type, or for one where two are refused; None if one is rendered anyway."""
    refused: list[Finding] = []
    for nodes in (SEVERAL, "nodes=1"):
        values = load_values(files, set_json=[f"machineType={json.dumps(name)}"], set_values=[nodes])
        error = _first_error(chart, values)
        if not error:
            return OwnValues(f"machineType={name},{nodes}", values, once=True)
        if name in alone:
            return None
        refused.append(error)
    message = f"lint does not render machine type {name}, because its values refuse it: {refused[0].problem.message}"
    problem = Problem(message, *row(chart, name), EACH_TYPE.remedy)
    return Finding(EACH_TYPE.id, problem, "unchecked", "machineType")


def row(chart: Chart, name: str, *keys: str | int) -> tuple[Path | str | None, int, int]:
    """Return the place of a machine type in the user's target, or of the value in a chart of chartgen's targets."""
    origin = origin_of(chart)
    if isinstance(origin, Composed) and is_users(origin.target.path):
        return origin.target.path, *origin.target.document.position(("machines", name, *keys))
    return place(chart, load_values(), ("machineType",))


def machine_type(chart: Chart, data: dict[str, Plain]) -> str:
    """Return the machine type of a run chart's values; empty in a chart that only claims to be the target's."""
    return _machines(chart, data)[0]


def _machines(chart: Chart, data: dict[str, Plain]) -> tuple[str, int]:
    """Return type and number of the machines in a run chart's values; nothing where a changed chart has none."""
    given = effective_values(chart, Values(data))
    name, count = given.get("machineType"), given.get("nodes")
    return (name, count) if isinstance(name, str) and isinstance(count, int) else ("", 0)


def _first_error(chart: Chart, values: Values) -> Finding | None:
    if not is_run_chart(chart):
        return None
    try:
        found = check(chart, values)
    except MissingToolError:
        raise
    except ChartgenError:
        return None  # Helm reports a file that cannot be read
    return next((finding for finding in found if finding.severity == "error"), None)


def is_run_chart(chart: Chart) -> bool:
    """Report whether a chart is the run chart of a known target."""
    origin = origin_of(chart)
    return isinstance(origin, Composed) and not origin.setup


FABRIC = Rule(
    "fabric-is-known",
    "A template of a user's fragment reads a key of `fabric` that no machine type of the target has: it prints "
    "nothing there, and Helm reports nothing.",
    "correct the key, or add it to the machine types that need it",
)
# A comment and a text in quotes contain no key; what has a default may be absent on purpose, in a fragment for several
# targets.
_KEY = re.compile(r"/\*.*|\"[^\"]*\"|`[^`]*`|\.fabric\.(?P<key>\w+)(?P<default>[\s)]*\|\s*default\b)?", re.DOTALL)


def unknown_keys(origin: Composed) -> Iterator[Finding]:
    """Yield each unknown key of `fabric` where a template of a user's fragment reads it."""
    known = {key for machine in origin.target.machines.values() for key in machine.fabric}
    for file in fragment_texts(fragment.path for fragment in origin.target.fragments if is_users(fragment.path)):
        for action in gotemplate.actions(read_text(file)):
            for found in _KEY.finditer(action.text):
                key = found["key"]
                if not key or key in known or found["default"]:
                    continue
                hint = did_you_mean(key, known)
                # `if` and `with` may ask for a key that only machine types of another target have
                if action.word not in ("if", "with", "else") or hint.startswith("did"):
                    problem = Problem(f"no machine type has 'fabric.{key}'", file, action.line, action.column, hint)
                    yield Finding(FABRIC.id, problem, key=key)
