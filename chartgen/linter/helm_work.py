"""Helm's tasks for one chart: they run while lint checks its files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from chartgen.composer.origin import TARGET, Composed, annotations_of, origin_of
from chartgen.errors import ChartgenError
from chartgen.findings import Finding
from chartgen.helm.chart import Chart
from chartgen.linter.dependencies import about_missing, needs_missing, unrendered_findings
from chartgen.linter.determinism import EVERY_RENDER, UPGRADED, asks_for_upgrade, builds_differ, differences, lookups
from chartgen.linter.documents import head_of
from chartgen.linter.examination import Subject
from chartgen.linter.render import Preset, RefusedRender, Renderer, Rendering

_RENDERED = ("templates/", "files/", "charts/", "crds/")


class _Started(NamedTuple):
    """Running Helms for one set of values, and whether to compare another render with theirs."""

    preset: Preset
    is_compared: bool
    lint: Future[list[Finding]] | None
    templates: list[Future[Rendering | RefusedRender]]
    older: Sequence[str]  # versions of Kubernetes that it is not rendered for yet


class HelmWork:
    """Helm's tasks for one chart without its missing dependencies, and their results."""

    def __init__(self, subject: Subject, renderer: Renderer, versions: Sequence[str], missing: Sequence[str]) -> None:
        self.chart, self.renderer, self.versions, self.missing = subject.chart, renderer, versions, missing
        self.is_chosen = bool(
            subject.versions
        )  # whether the versions may be others than the chart's kubeVersion allows
        self.is_library = head_of(self.chart).get("type") == "library"
        self.keeping = lookups({**subject.packaged, **self.chart.files})
        self.has_subcharts = bool(subject.folder and (subject.folder / "charts").exists())
        self.started: list[_Started] = []
        self.renderings: list[Rendering] = []
        self.upgraded = False  # whether an upgrade need not be rendered any more
        self.is_as_built = False  # whether all that Helm renders is of a new build, with no subchart beside it
        self.is_alike = False  # whether one render is that for all versions: the chart is chartgen's, and asks for none

    def builds_differ(self) -> Iterator[Finding]:
        """Return what differs from a new build; a chart of chartgen's own files alone hides no word from the search."""
        found, origin = [*builds_differ(self.chart)], origin_of(self.chart)
        yield from found
        self.is_as_built = not self.has_subcharts and not any(
            str(each.problem.path).startswith(_RENDERED) for each in found
        )
        is_own = isinstance(origin, Composed) and not origin.target.library.roots[1:]
        self.upgraded = is_own and not found and not self.has_subcharts
        asks = self.is_chosen or any("Capabilities" in text for text in self.chart.files.values())
        self.is_alike = self.upgraded and not asks

    def start(self, preset: Preset, *, once: bool = False) -> None:
        """Start lint and render with values; a library chart renders nothing.

        Args:
            once: Whether one render, for the newest Kubernetes, is enough.

        The lint of Helm 3 always applies a schema (3.22.0, pkg/lint/rules/values.go), so it is left out if a schema
        must not be used.
        """
        newest, lint = self.versions[-1], None
        versions = () if self.is_library else (newest,) if once else self.versions
        # a chart of chartgen may turn out to be alike for all versions
        at_once = versions[-1:] if is_composed(self.chart) else versions
        templates = [self.renderer.template(preset, each) for each in at_once]
        if not once and (self.renderer.schemas or self.renderer.helm.version >= (4,)):
            lint = self.renderer.lint(preset.data, newest)  # last: the other steps are on what Helm renders
        self.started.append(_Started(preset, not once, lint, templates, versions[: -len(at_once)]))

    def linted(self) -> Iterator[Finding]:
        """Return the findings of `helm lint`, except those that a missing dependency or value explains.

        Where `required` refuses a value, `helm lint` renders on with an empty one. It also asks for the names of lists,
        such as a RoleList, which have none; `names-are-set` looks for those of objects.
        """
        for preset, _, lint, running, _ in self.started:
            found = [] if lint is None or self._is_replaced(preset) else lint.result()
            asks = found and any(getattr(each.result(), "asks", False) for each in running)
            yield from (
                each
                for each in found
                if not needs_missing(each.problem.message, self.missing)
                and 'naming requirements: "":' not in each.problem.message
                and not (asks and str(each.problem.path).startswith("templates/"))
            )

    def rendered(self) -> Iterator[Finding]:
        """Return the refusals of `helm template`, and the differences between two renders of the same values."""
        refused: list[RefusedRender] = []
        for each in () if self.is_alike else self.started:
            each.templates[:0] = [self.renderer.template(each.preset, older) for older in each.older]
        for preset, is_compared, _, running, older in self.started:
            answers = [template.result() for template in running]
            made = [answer for answer in answers if isinstance(answer, Rendering)]
            if made and self.is_alike:
                made = [*(replace(made[-1], kubernetes=version) for version in older), made[-1]]
            self.renderings += made
            refused += (
                [] if self._is_replaced(preset) else [each for each in answers if isinstance(each, RefusedRender)]
            )
            if made and is_compared:
                yield from self._compared(made, preset)
        asks = not is_composed(self.chart)
        yield from unrendered_findings(refused, self.missing, asks=asks, cluster=bool(self.keeping))
        yield from about_missing(self.chart, self.missing, rendered=self.is_library or bool(self.renderings))

    def _is_replaced(self, preset: Preset) -> bool:
        """Report whether a third-party chart asks for values instead of its defaults, and other values render."""
        if preset.name or is_composed(self.chart):
            return False
        answers = [(given.name, template.result()) for given, _, _, running, _ in self.started for template in running]
        asks = [each.asks for name, each in answers if not name and isinstance(each, RefusedRender)]
        return all(asks) and bool(asks) and any(name and isinstance(each, Rendering) for name, each in answers)

    def _compared(self, made: Sequence[Rendering], preset: Preset) -> Iterator[Finding]:
        """Report differences to a second render, and to one for an upgrade if a template asks for upgrades.

        The objects of an upgrade are judged in any case, once: an archive, or words that a template joins, may ask too.
        """
        last, asks = made[-1], asks_for_upgrade(self.chart)
        running = []
        if len({each.text for each in made}) > 1 or len(self.versions) == 1:
            running.append((EVERY_RENDER, last, self.renderer.template(preset, last.kubernetes)))
        if asks or not self.upgraded:
            self.upgraded = True
            running += [
                (UPGRADED, each, self.renderer.template(preset, each.kubernetes, upgrade=True)) for each in made
            ]
        for when, first, template in running:
            second = template.result()
            if not isinstance(second, Rendering) or second.text == first.text:
                continue
            self.renderings += [second] if when == UPGRADED else []  # its objects are judged too
            if first is last and (asks or when != UPGRADED):
                with suppress(ChartgenError):  # invalid YAML is reported by the step that reads the objects
                    yield from differences(self.chart, self.keeping, last.manifests, second.manifests, when)


def is_composed(chart: Chart) -> bool:
    """Report whether chartgen composed the chart, of a known target or not."""
    return TARGET in annotations_of(chart)
