"""The steps of lint: one after another on one chart, each timed, from its files to its scripts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, TypeAlias

from chartgen.composer.origin import TARGET, annotations_of
from chartgen.data.api_schemas import kubernetes_versions
from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.findings import NOT_OURS, UNFINISHED, Finding
from chartgen.helm import manifests
from chartgen.helm.chart import Chart
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.values import Values, load_values
from chartgen.linter.dependencies import (
    about_missing,
    missing_dependencies,
    needs_missing,
    unrendered_findings,
    without,
)
from chartgen.linter.determinism import EVERY_RENDER, UPGRADED, asks_for_upgrade, differences, lookups
from chartgen.linter.documents import head_of
from chartgen.linter.limits import OutOfTimeError, limited
from chartgen.linter.render import Preset, RefusedRender, Renderer, Rendering, drawn_names, with_preset
from chartgen.linter.schema_references import FOREIGN, foreign_references
from chartgen.linter.selection import without_reason

Layers: TypeAlias = Values | Sequence[Path]
LATER = "chartgen.linter.later_steps"  # imported while Helm runs, which takes as long
_MORE = "give it more time with --limit, or make the chart smaller"


@dataclass(frozen=True)
class Subject:
    """A chart to lint.

    Args:
        folder: Its folder; None for a chart in memory.
        presets: Name -> values, or their files with the lowest layer first.
        bare: Whether to render it without values too.
        site: The example of a site file, for a chart that refuses its defaults.
        faults: Faults of its files; with any, Helm is not run.
        versions: Kubernetes versions to render for; empty for the oldest and newest that the chart supports.
        data: Its binary files, path -> bytes.
        schemas: Schemas that are not among its text files, path -> text.
        crds: Objects that Helm installs without rendering, path -> text.
        packaged: Templates of packaged subcharts that may call `lookup`, path -> text.
    """

    chart: Chart
    folder: Path | None = None
    presets: Mapping[str, Layers] = field(default_factory=dict)
    bare: bool = True
    site: Path | None = None
    faults: Sequence[Finding] = ()
    versions: Sequence[str] = ()
    data: Mapping[str, bytes] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)
    crds: Mapping[str, str] = field(default_factory=dict)
    packaged: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LintStep:
    """A completed step, and its duration in seconds."""

    name: str
    seconds: float


@dataclass
class Examination:
    """The findings so far, the completed steps, and Helm's renderings."""

    subject: Subject
    findings: list[Finding] = field(default_factory=list)
    steps: list[LintStep] = field(default_factory=list)
    renderings: list[Rendering] = field(default_factory=list)
    limit: float | None = None

    def add(self, name: str, findings: Callable[[], Iterable[Finding]]) -> None:
        """Run and time a step; report it when it exceeds the limit."""
        start = time.perf_counter()
        found: list[Finding] = []
        try:
            with limited(self.limit) if self.limit else nullcontext():
                found += findings()
        except OutOfTimeError:
            message = f"the step {name!r} did not end within {self.limit:g} s, so it was not checked"
            found.append(Finding(UNFINISHED, Problem(message, "Chart.yaml", 1, hint=_MORE), "unchecked"))
        self.findings += found
        self.steps.append(LintStep(name, time.perf_counter() - start))


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
    import_module(LATER).place(done)
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
    done.add("schema and checks" if _is_ours(chart) else "schema, no job", lambda: _presets(work, subject))
    import_module(LATER).take(done, work)


def _presets(work: HelmWork, subject: Subject) -> Iterator[Finding]:
    """Check each preset, and start to render the valid ones; third-party charts get no checks of jobs."""
    files = {path: text for path, text in subject.chart.files.items() if path != SCHEMA_FILE}
    chart = subject.chart if work.renderer.schemas else replace(subject.chart, files=files)
    machines = import_module("chartgen.linter.machines") if subject.bare else None
    refused = machines.refused_defaults(chart) if machines else None
    if refused and not subject.site and not subject.presets:
        yield refused
        return
    if machines and not refused:
        work.start(Preset())
    site = subject.site if refused else None
    yield from _given(work, chart, {**({site.name: [site]} if site else {}), **subject.presets})
    if machines:
        started = [each.preset.data for each in work.started]
        for own in machines.own_values(chart, started, site, presets=bool(subject.presets)):
            if isinstance(own, Finding):
                yield own
            else:
                work.start(Preset(own.name, own.values.data), once=own.once)


def _given(work: HelmWork, chart: Chart, presets: Mapping[str, Layers]) -> Iterator[Finding]:
    documents = None if _is_ours(chart) else sys.maxsize if work.renderer.helm.version >= (4,) else 1
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


class _Started(NamedTuple):
    """Running Helms for one set of values, and whether to compare another render with theirs."""

    preset: Preset
    is_compared: bool
    lint: Future[list[Finding]] | None
    templates: list[Future[Rendering | RefusedRender]]


class HelmWork:
    """Helm's tasks for one chart without its missing dependencies, and their results."""

    def __init__(self, subject: Subject, renderer: Renderer, versions: Sequence[str], missing: Sequence[str]) -> None:
        self.chart, self.renderer, self.versions, self.missing = subject.chart, renderer, versions, missing
        self.is_library = head_of(self.chart).get("type") == "library"
        self.keeping = lookups({**subject.packaged, **self.chart.files})
        self.started: list[_Started] = []
        self.renderings: list[Rendering] = []

    def start(self, preset: Preset, *, once: bool = False) -> None:
        """Start lint and render with values; a library chart renders nothing.

        Args:
            once: Whether one render, for the newest Kubernetes, is enough.

        The lint of Helm 3 always applies a schema (3.22.0, pkg/lint/rules/values.go), so it is left out if a schema
        must not be used.
        """
        newest, lint = self.versions[-1], None
        if not once and (self.renderer.schemas or self.renderer.helm.version >= (4,)):
            lint = self.renderer.lint(preset.data, newest)
        versions = () if self.is_library else (newest,) if once else self.versions
        self.started.append(
            _Started(preset, not once, lint, [self.renderer.template(preset, each) for each in versions])
        )

    def linted(self) -> Iterator[Finding]:
        """Return the findings of `helm lint`, except those that a missing dependency or value explains.

        Where `required` refuses a value, `helm lint` renders on with an empty one.
        """
        for preset, _, lint, running in self.started:
            found = [] if lint is None or self._is_replaced(preset) else lint.result()
            asks = found and any(getattr(each.result(), "asks", False) for each in running)
            yield from (
                each
                for each in found
                if not needs_missing(each.problem.message, self.missing)
                and not (asks and str(each.problem.path).startswith("templates/"))
            )

    def rendered(self) -> Iterator[Finding]:
        """Return the refusals of `helm template`, and the differences between two renders of the same values."""
        refused: list[RefusedRender] = []
        for preset, is_compared, _, running in self.started:
            answers = [template.result() for template in running]
            made = [answer for answer in answers if isinstance(answer, Rendering)]
            self.renderings += made
            refused += (
                [] if self._is_replaced(preset) else [each for each in answers if isinstance(each, RefusedRender)]
            )
            if made and is_compared:
                yield from self._compared(made, preset)
        asks = not _is_ours(self.chart)
        yield from unrendered_findings(refused, self.missing, asks=asks, cluster=bool(self.keeping))
        yield from about_missing(self.chart, self.missing, rendered=self.is_library or bool(self.renderings))

    def _is_replaced(self, preset: Preset) -> bool:
        """Report whether a third-party chart asks for values instead of its defaults, and other values render."""
        if preset.name or _is_ours(self.chart):
            return False
        answers = [(given.name, template.result()) for given, *_, running in self.started for template in running]
        asks = [each.asks for name, each in answers if not name and isinstance(each, RefusedRender)]
        return all(asks) and bool(asks) and any(name and isinstance(each, Rendering) for name, each in answers)

    def _compared(self, made: Sequence[Rendering], preset: Preset) -> Iterator[Finding]:
        """Report differences to a second render, and to one for an upgrade if a template asks for upgrades."""
        last, running = made[-1], {}
        if len({each.text for each in made}) > 1 or len(self.versions) == 1:
            running[EVERY_RENDER] = self.renderer.template(preset, last.kubernetes)
        if asks_for_upgrade(self.chart):
            running[UPGRADED] = self.renderer.template(preset, last.kubernetes, upgrade=True)
        for when, template in running.items():
            second = template.result()
            if isinstance(second, Rendering) and second.text != last.text:
                self.renderings += [second] if when == UPGRADED else []  # its objects are judged too
                with suppress(ChartgenError):  # invalid YAML is reported by the step that reads the objects
                    yield from differences(self.chart, self.keeping, last.manifests, second.manifests, when)


def _is_ours(chart: Chart) -> bool:
    """Report whether chartgen composed the chart, of a known target or not."""
    return TARGET in annotations_of(chart)
