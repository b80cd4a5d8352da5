"""The steps of lint behind the start of Helm, which runs while these modules are imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from chartgen.checks import unanswered
from chartgen.errors import ChartgenError
from chartgen.findings import NOT_OURS, Finding, in_order
from chartgen.linter.dependencies import unrendered_objects
from chartgen.linter.determinism import banned_functions
from chartgen.linter.dumps import printing_files
from chartgen.linter.examination import Examination
from chartgen.linter.helm_work import HelmWork
from chartgen.linter.inspection import MISSHAPEN, Inspection
from chartgen.linter.machines import is_run_chart
from chartgen.linter.placement import labelled, misplaced, placed_pods
from chartgen.linter.policy import Reasons
from chartgen.linter.render import Preset, Rendering
from chartgen.linter.rules import level_of
from chartgen.linter.size import release_fits
from chartgen.linter.sources import Sources, ignored_there, placed
from chartgen.linter.tokens import rendered_tokens
from chartgen.linter.unknown_values import unknown_values
from chartgen.linter.values_coverage import documents


def take(done: Examination, work: HelmWork) -> None:
    """Take the steps, which end with those on Helm's renderings."""
    chart, subject = done.subject.chart, done.subject
    done.findings += [finding for finding in unanswered(chart) if finding.rule != NOT_OURS]
    done.add("determinism", lambda: [*banned_functions(chart), *work.builds_differ()])
    done.add("secrets", lambda: [*rendered_tokens(chart), *printing_files(chart)])
    done.add("README and schema", lambda: [*documents(chart), *unknown_values(chart)])
    done.add("helm template", work.rendered)
    done.renderings = work.renderings
    inspection = Inspection(chart, Reasons(chart, as_built=work.is_as_built), work.missing)
    unrendered = (
        [Rendering(Preset(), work.versions[-1], unrendered_objects(chart, subject.crds))] if subject.crds else []
    )
    done.add("objects", lambda: inspection.read([*done.renderings, *unrendered]))
    for step in inspection.steps:
        done.add(step, partial(inspection.findings, step))
    if is_run_chart(chart):
        done.add("machines", lambda: _machines(done))
    done.add("release size", lambda: _sizes(done, inspection))
    done.add("helm lint", work.linted)


def _machines(done: Examination) -> Iterator[Finding]:
    chart = done.subject.chart
    with suppress(ChartgenError, *MISSHAPEN):  # other steps report broken YAML and fields of a wrong type
        yield from labelled(chart)
        yield from misplaced(chart, placed_pods(chart, done.renderings))


def _sizes(done: Examination, inspection: Inspection) -> Iterator[Finding]:
    largest = max((rendering.text for rendering in done.renderings), key=len, default="")
    yield from release_fits(done.subject.chart, done.subject.data, largest)
    yield from inspection.findings("release size")


def place(done: Examination) -> None:
    """Put the findings in order, each at a place where it can be fixed; leave out those that the chart excuses."""
    subject, chart = done.subject, done.subject.chart
    kept = (finding for finding in reversed(done.findings) if finding.rule not in ignored_there(finding, chart))
    sources = Sources(chart)
    failed = {(each.problem.path, each.problem.line) for each in done.findings if each.rule == "helm-template"}
    # Helm's lint renders too, and reports the same obstacle a second time.
    kept = (each for each in kept if each.rule != "helm-lint" or (each.problem.path, each.problem.line) not in failed)
    found = (placed(each, subject.folder, sources) for each in kept)
    done.findings = in_order(finding._replace(level=level_of(finding.rule)) for finding in found)
