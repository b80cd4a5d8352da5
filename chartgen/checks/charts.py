"""What is known of a chart beside its job: its target, its policies, and what only its own templates refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from chartgen.checks.job import TASKS, Job
from chartgen.checks.values import SCHEMA, check_values, place
from chartgen.composer.composed import composed_chart
from chartgen.composer.origin import POLICIES, TARGET, Composed, Unknown, annotations_of, origin_of
from chartgen.composer.policies import begins, full_name, mirrored, wanted
from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.findings import NOT_OURS, REFUSED, TARGET_UNKNOWN, Finding, KeyProblem, in_order, rule, rules_in
from chartgen.helm.chart import Chart
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.values import Values
from chartgen.helm.yaml import Keys, dotted, load, require_map

_LINE = re.compile(r"(?P<key>[A-Za-z][\w-]*(?:\.[\w-]+)*): (?P<message>.*?)(?:; (?P<hint>[^;]*))?")


@rule("the policies of the user's folders", tasks=TASKS)
def allowed_registries(job: Job) -> Iterator[KeyProblem]:
    """The images of the values come from a registry that the policies allow, after a mirror has replaced them.

    Helm refuses the images that only templates know.
    """
    want = wanted(job.target.policies)
    if "registries" not in want:
        return
    names = ", ".join(policy.name for policy in job.target.policies if "registries" in policy.data)
    for at, image in _images(job):
        found = mirrored(image, tuple(want.get("images", {}).items()))
        if image and not any(begins(full_name(found), each) for each in want["registries"]):
            message = f"{found} is of no registry that is allowed [policy {names}]"
            yield KeyProblem(dotted(at), message, f"use {' or '.join(want['registries'])}", at=at)


def _images(job: Job) -> Iterator[tuple[Keys, str]]:
    """Yield the images of the program, and of the user's containers and volumes, each with its place."""
    yield tuple(job.key("image").split(".")), job.image
    for key in ("extraInitContainers", "extraContainers"):
        for index, container in enumerate(job.values[key]):
            yield (key, index, "image"), str(container.get("image", ""))
    for index, volume in enumerate(job.values["extraVolumes"]):
        if isinstance(source := volume.get("image"), dict):
            yield ("extraVolumes", index, "image", "reference"), str(source.get("reference", ""))


POLICY = rules_in(globals())


def unanswered(chart: Chart) -> list[Finding]:
    """Report that the jobs of a chart cannot be checked; nothing for charts of known targets, and for setup charts."""
    origin = origin_of(chart)
    if isinstance(origin, Composed) or (isinstance(origin, Unknown) and origin.setup):
        return []
    document = load(chart.files.get("Chart.yaml", ""), "Chart.yaml")
    if isinstance(origin, Unknown):
        message = f"target {origin.name} of this chart is not known here, so its job was not checked"
        hint = "give the folder that contains it with --path or CHARTGEN_PATH"
        return _unchecked(TARGET_UNKNOWN, message, hint, document.position(("annotations", TARGET)))
    message, hint = "chartgen did not make this chart, so its job was not checked", "check a target, or a chart of one"
    return _unchecked(NOT_OURS, message, hint, document.position(("name",)))


def changes(job: Job, chart: Chart, values: Values) -> list[Finding]:
    """Report what keeps a chart that was built earlier from being checked: other policies, or values of its own."""
    if isinstance(chart.origin, Composed) and not chart.origin.by_annotation:
        return []
    return _policies(job, chart) or _misfits(job, chart, values)


def _policies(job: Job, chart: Chart) -> list[Finding]:
    """Report that a chart has other policies than those that are known here."""
    built = str(annotations_of(chart).get(POLICIES) or "").split()
    known = [policy.name for policy in job.target.policies]
    if lacking := [name for name in built if name not in known]:
        message = f"policy {', '.join(lacking)} of this chart is not known here, so its job was not checked"
        hint = "give the folder that contains it with --path, CHARTGEN_PATH or chartgen.yaml"
        return _unchecked(TARGET_UNKNOWN, message, hint)
    if lacking := [name for name in known if name not in built]:
        message = f"the chart was built without policy {', '.join(lacking)}"
        return _unchecked(NOT_OURS, message, _build_again(job))
    return []


def _misfits(job: Job, chart: Chart, values: Values) -> list[Finding]:
    """Report values that no check expects: the chart's schema may accept them, or its defaults lack them."""
    interface = composed_chart("compose_interface", job.target, job.workload)
    own = interface.files[SCHEMA_FILE]
    if chart.files.get(SCHEMA_FILE) != own and (misfits := open_misfits(chart, own, values)):
        return [Finding(SCHEMA, problem) for problem in misfits]
    defaults = require_map(load(interface.files["values.yaml"], "values.yaml"), "values.yaml")
    lacking = next((key for key in defaults if defaults[key] is not None and key not in job.values), None)
    if lacking is None:
        return []
    message = f"the chart lacks {lacking!r}, a value of target {job.target.name}, so its job was not checked"
    return _unchecked(NOT_OURS, message, _build_again(job), file="values.yaml")


def _build_again(job: Job) -> str:
    return f"build it again: chartgen build {job.target.name}"


def _unchecked(
    rule_id: str, message: str, hint: str, position: tuple[int, int] = (0, 0), file: str = "Chart.yaml"
) -> list[Finding]:
    return [Finding(rule_id, Problem(message, file, *position, hint), "unchecked")]


def open_misfits(chart: Chart, schema: str, values: Values) -> list[Problem]:
    """Validate values against a schema, given as JSON, that accepts unknown keys."""
    opened = json.dumps(_open(json.loads(schema)))
    return check_values(replace(chart, files={**chart.files, SCHEMA_FILE: opened}), values)


def _open(schema: Any) -> Any:
    """Return a schema without its refusal of unknown keys: a changed chart may have keys of its own."""
    if isinstance(schema, list):
        return [_open(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _open(value) for key, value in schema.items() if key != "additionalProperties" or value}


def render_refusals(chart: Chart, values: Values) -> list[Finding]:
    """Render a chart and return its refusals; without Helm, return one `unchecked` finding.

    Args:
        chart: A run chart with its templates.
        values: The user's layers; they match the schema.
    """
    from chartgen.helm.manifests import render

    try:
        render(chart, "check", "default", values.data)
    except MissingToolError as error:
        message = f"the chart's own rules were not checked: {error.problems[0].message}"
        return [Finding(REFUSED, Problem(message, hint=error.problems[0].hint), "unchecked")]
    except ChartgenError as error:
        return in_order(Finding(REFUSED, _placed(problem, chart, values)) for problem in error.problems)
    return []


def unchecked_refusals(chart: Chart) -> list[Path]:
    """Return the user's own files whose refusals only Helm knows; rules in rules.yaml need no Helm."""
    origin = origin_of(chart)
    if not isinstance(origin, Composed):
        return []
    target = origin.target
    images = [policy.path for policy in target.policies if "registries" in policy.data]
    folders = [fragment.path for fragment in target.fragments] + [launcher.path for launcher in target.launchers]
    files = (folder / "validate.tpl" for folder in folders)
    return images + [path for path in files if path.is_file() and not target.library.is_builtin(path)]


def _placed(problem: Problem, chart: Chart, values: Values) -> Problem:
    """Return a refusal with the place of its value; its text begins with the value's key."""
    match = _LINE.fullmatch(problem.message)
    if not match or problem.path:
        return problem
    where = place(chart, values, match["key"].split("."))
    return Problem(f"{match['key']}: {match['message']}", *where, match["hint"] or problem.hint)
