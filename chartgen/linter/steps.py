"""The steps of lint: one after another on one chart, each timed, from its files to its scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from chartgen.data.api_schemas import kubernetes_versions
from chartgen.errors import ChartgenError, MissingToolError
from chartgen.findings import NOT_OURS, Finding
from chartgen.helm import manifests
from chartgen.helm.chart import Chart
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.values import Values, load_values
from chartgen.linter.dependencies import missing_dependencies, without
from chartgen.linter.documents import head_of
from chartgen.linter.examination import Examination, Layers, Subject
from chartgen.linter.helm_work import HelmWork, is_composed
from chartgen.linter.render import Preset, Renderer, drawn_names, with_preset
from chartgen.linter.schema_references import FOREIGN, foreign_references
from chartgen.linter.selection import without_reason


def run_steps(subject: Subject, limit: float | None = None) -> Examination:
    """Run all steps on a chart.

    Args:
        limit: Time limit of one step in seconds, for main threads only; None for no limit.

    Returns:
        The completed steps, and the findings in order, each at a place where it can be fixed.

    Raises:
        MissingToolError: No suitable Helm is found.
    """
    done = Examination(subject, limit=limit)
    done.add("files", lambda: [*subject.faults, *without_reason(subject.chart.files)])
    if not subject.faults:
        missing = missing_dependencies(subject.chart, subject.folder)
        copied = without(subject.chart, subject.folder, missing) if subject.folder and missing else None
        whole = nullcontext(subject.folder) if subject.folder else manifests.written_chart(subject.chart)
        with copied or whole as folder:
            renderer = Renderer(folder)
            try:
                _climb(done, renderer, missing)
            finally:
                # A process with limits ends its own children, and cannot wait for them.
                renderer.close(wait=limit is None)
    from chartgen.linter import later_steps

    later_steps.place(done)
    return done


def _climb(done: Examination, renderer: Renderer, missing: Sequence[str]) -> None:
    chart, subject = done.subject.chart, done.subject
    schemas = {path: text for path, text in chart.files.items() if path.rpartition("/")[2] == SCHEMA_FILE}
    done.add("schema references", lambda: foreign_references(schemas | dict(subject.schemas)))
    renderer = replace(renderer, schemas=not any(finding.rule == FOREIGN.id for finding in done.findings))
    renderer = replace(renderer, names=drawn_names(chart))
    known = kubernetes_versions(str(head_of(chart).get("kubeVersion", "")))
    versions = subject.versions or list(dict.fromkeys((known[0], known[-1])))
    work = HelmWork(subject, renderer, versions, missing)
    done.add("schema and checks" if is_composed(chart) else "schema, no job", lambda: _presets(work, subject))
    from chartgen.linter import later_steps  # while Helm runs, which takes as long

    later_steps.take(done, work)


def _presets(work: HelmWork, subject: Subject) -> Iterator[Finding]:
    """Check each preset, and start to render the valid ones; third-party charts get no checks of jobs."""
    files = {path: text for path, text in subject.chart.files.items() if path != SCHEMA_FILE}
    chart = subject.chart if work.renderer.schemas else replace(subject.chart, files=files)
    refused = None
    if subject.bare:
        from chartgen.linter.machines import refused_defaults

        refused = refused_defaults(chart)
    if refused and not subject.site and not subject.presets:
        yield refused
        return
    if subject.bare and not refused:
        work.start(Preset())
    site = subject.site if refused else None
    yield from _given(work, chart, {**({site.name: [site]} if site else {}), **subject.presets})
    if subject.bare:
        from chartgen.linter.machines import own_values

        started = [each.preset.data for each in work.started]
        for own in own_values(chart, started, site, presets=bool(subject.presets)):
            if isinstance(own, Finding):
                yield own
            else:
                work.start(Preset(own.name, own.values.data), once=own.once)


def _given(work: HelmWork, chart: Chart, presets: Mapping[str, Layers]) -> Iterator[Finding]:
    documents = None if is_composed(chart) else sys.maxsize if work.renderer.helm.version >= (4,) else 1
    for name, given in presets.items():
        before = len(work.started)
        try:
            values = given if isinstance(given, Values) else load_values(given, documents=documents)
            files = [layer.source for layer in values.layers if isinstance(layer.source, Path)]
            preset = Preset(name, values.data, files[-1] if files else "values.yaml")
            work.start(preset)  # Helm runs beside the checks and their imports
            from chartgen.checks import checked

            found, decision = checked(chart, values)
        except MissingToolError:
            raise
        except ChartgenError as error:
            yield from (Finding("helm-template", with_preset(problem, Preset(name))) for problem in error.problems)
            del work.started[before:]
            continue
        yield from (finding for finding in found if finding.rule != NOT_OURS)
        decided = decision.values.data if decision else values.data
        fits = all(finding.severity != "error" for finding in found)
        if not fits or decided != values.data:
            del work.started[before:]
        if fits and decided != values.data:
            work.start(replace(preset, data=decided))
