"""One call of lint: choose the charts and settings, and collect the findings that count."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from chartgen.composer.library import Library, open_library
from chartgen.composer.origin import Composed, Foreign, Unknown, identified, origin_of
from chartgen.composer.presets import VALUES
from chartgen.composer.target import Target, load_target
from chartgen.data.api_schemas import kubernetes_versions
from chartgen.errors import ChartgenError, Problem, UsageError, did_you_mean
from chartgen.findings import Finding, Level, in_order
from chartgen.helm.chart import Chart, is_archive, is_remote
from chartgen.helm.values import Values, load_values
from chartgen.helm.yaml import load_file
from chartgen.linter import cache, find_presets
from chartgen.linter.chart_files import named_in_archive, read_chart
from chartgen.linter.config import Config, escapes, read_config, rejected_path
from chartgen.linter.confined import Outcome, confined
from chartgen.linter.examination import Subject
from chartgen.linter.left_out import late, left_out, other_presets
from chartgen.linter.limits import Limits
from chartgen.linter.selection import beyond, read_baseline
from chartgen.linter.steps import run_steps

OnOutcome = Callable[[str, Outcome], None]
Work: TypeAlias = Callable[[], Outcome]

_SEARCH = 10.0  # seconds that the search for other charts has when the charts took the time of the call


@dataclass(frozen=True)
class Settings:
    """Settings of one lint call."""

    config: Config  # the repository's settings, overridden by the command line's
    charts: tuple[str, ...]  # folders, values files and targets
    library: Library
    # The folders of targets and fragments that are not chartgen's own, including installed packages; empty where
    # neither presets nor the cache need them, since packages take 30 ms
    folders: tuple[Path, ...]
    values: Values
    workload: str | None = None  # a workload kind that replaces the targets' own
    cache: bool = True  # whether to use cached findings of unchanged charts
    limits: Limits = field(default_factory=Limits)
    plain_http: bool = False  # whether to query registries without TLS
    # The folders that the call or the repository names; what it has besides the charts is reported
    roots: tuple[Path, ...] = ()
    unchecked: tuple[Finding, ...] = ()  # what the repository's settings leave out

    @classmethod
    def of(cls, folder: Path, charts: Sequence[str], path: Sequence[Path], values: Values, **options: Any) -> Settings:
        """Return the settings of a folder combined with those of a call.

        Args:
            charts: Charts named by the call; empty for the configuration's charts.
            path: The user's own folders of targets and fragments.
            options: Fields of `Config`, `workload`, `cache`, `limits` and `plain_http`.

        Raises:
            UsageError: No chart is named and none found, or a setting is wrong.
        """
        own = {key: options.pop(key) for key in ("workload", "cache", "limits", "plain_http") if key in options}
        config = replace(read_config(folder), **options)
        if unknown := [each for each in config.kubernetes if each not in kubernetes_versions()]:
            hint = "known: " + ", ".join(kubernetes_versions())
            raise UsageError(Problem(f"no schemas of Kubernetes {each}", hint=hint) for each in unknown)
        named = tuple(charts) or config.charts or _found(folder)
        of_settings = bool(config.charts) and not charts
        roots = (folder,) if of_settings else tuple(Path(name) for name in named if Path(name).is_dir())
        unchecked = () if "presets" in options else tuple(other_presets(folder, config.presets))
        # whoever opens a pull request could excuse with it what lint finds
        library = open_library(path, settings=False)
        folders = library.folders() if own.get("cache", True) or not values.layers else ()
        return cls(config, named, library, folders, values, roots=roots, unchecked=unchecked, **own)

    @property
    def name(self) -> str:
        """The subject of the findings, as one word."""
        return self.charts[0] if len(self.charts) == 1 else "lint"


def lint_all(settings: Settings, on_outcome: OnOutcome) -> list[Finding]:
    """Lint all charts of a call.

    Args:
        on_outcome: Called with each chart's name and outcome.

    Returns:
        The findings that count, sorted by place.

    Raises:
        UsageError: A name that is not a chart, a values file or a target, or an unknown rule.
        MissingToolError: No suitable Helm is found.
    """
    config = settings.config
    _refuse_unknown_rules(config)
    baseline = read_baseline(config.baseline) if config.baseline else None
    found = in_order(_lint(settings, on_outcome))
    selected = (finding for finding in found if not config.select or finding.rule in config.select)
    counting = [finding for finding in selected if finding.rule not in config.ignore]
    return counting if baseline is None or not config.baseline else beyond(counting, baseline, config.baseline.parent)


def _refuse_unknown_rules(config: Config) -> None:
    if not (config.select or config.ignore):
        return
    from chartgen.linter.catalogue import known_rules

    ids = {rule.id for rule in known_rules()}
    named = (*config.select, *(each.partition(":")[0] for each in config.ignore))
    if unknown := [name for name in named if name not in ids]:
        raise UsageError(Problem(f"no rule is named {name!r}", hint=did_you_mean(name, ids)) for name in unknown)


def _lint(settings: Settings, on_outcome: OnOutcome) -> Iterator[Finding]:
    """Lint each chart once, in its own process, until the time of the call ends; report what is left out."""
    yield from settings.unchecked
    ends, seen = time.monotonic() + settings.limits.call, set[str]()
    for name, work in _charts(settings, ends):
        left = ends - time.monotonic()
        # the name of a target's chart is no path: a folder may have it too
        of_target = isinstance(work, partial) and work.func is _composed
        if (place := name if of_target else os.path.realpath(name)) in seen:
            continue
        if seen:  # what is imported here, the processes of all further charts have
            import chartgen.linter.later_steps  # noqa: F401
        seen.add(place)
        if not work or left <= 0:
            yield late(name, settings.limits.call)
            continue
        done = confined(name, work, replace(settings.limits, seconds=min(left, settings.limits.seconds)))
        if done.steps != []:
            on_outcome(name, done)
        pairs = (each.partition(":") for each in settings.config.ignore)  # ID:CHART
        excused = {rule for rule, _, chart in pairs if chart and os.path.realpath(chart) == os.path.realpath(name)}
        yield from (finding for finding in done.findings if finding.rule not in excused)
    yield from left_out(settings.roots, seen, max(ends, time.monotonic() + _SEARCH))


def _charts(settings: Settings, ends: float) -> Iterator[tuple[str, Work | None]]:
    """Yield the charts of a call; without work when its time ended before their name was read."""
    for name in dict.fromkeys(settings.charts):
        yield from _work(name, settings) if time.monotonic() < ends else [(name, None)]


def _work(name: str, settings: Settings) -> Iterator[tuple[str, Work]]:
    path = Path(name)
    if is_remote(name) or (path.is_file() and is_archive(path)):
        # removed here: the lint process may be killed
        with tempfile.TemporaryDirectory(prefix="chartgen-") as folder:
            yield name, partial(_packaged, name, Path(folder), settings)
    elif path.is_dir() and not (path / "Chart.yaml").exists() and (inner := sorted(path.glob("*/Chart.yaml"))):
        for file in inner:
            yield str(file.parent), partial(_folder, file.parent, path, settings)
    elif path.is_dir():
        yield name, partial(_folder, path, path, settings)
    elif path.is_file():
        yield name, partial(_file, path)
    else:
        from chartgen.composer.assembly import compose, compose_setup

        target = _target(name, settings)
        yield name, partial(_composed, target, settings, compose)
        yield f"{name}-setup", partial(_composed, target, settings, compose_setup)


def _file(path: Path) -> Outcome:
    from chartgen.linter.handwritten import lint_values

    return Outcome(list(lint_values(load_file(path))), [])


def _packaged(name: str, folder: Path, settings: Settings) -> Outcome:
    """Lint a packaged chart, unpacked into an empty folder."""
    from chartgen.helm.packages import fetched, unpack_chart

    archive = Path(name)
    if is_remote(name):
        (folder / "fetched").mkdir()
        limit = settings.limits.seconds / 2
        archive = fetched(name, folder / "fetched", limit=limit, plain_http=settings.plain_http)
    elif escapes(archive, Path.cwd()):
        raise ChartgenError(rejected_path("the chart", "its archive is a link out of the repository", archive))
    chart = unpack_chart(archive, name, folder)
    # cached findings would name the temporary folder
    done = _folder(chart, chart, replace(settings, cache=False))
    return replace(done, findings=[named_in_archive(finding, name, chart) for finding in done.findings])


def _folder(path: Path, named: Path, settings: Settings) -> Outcome:
    """Lint the chart of a folder; the call named it, or its parent folder."""
    if escapes(path, Path.cwd()) or escapes(path, named):
        raise ChartgenError(rejected_path("the chart", "its folder is a link out of the repository", path))
    read = read_chart(path)
    subject = replace(_subject(identified(read.chart, settings.library), settings), folder=path)
    subject = replace(subject, faults=(*read.findings, *subject.faults), data=read.data, schemas=read.schemas)
    subject = replace(subject, crds=read.crds, packaged=read.packaged)
    if not subject.presets and not subject.faults:  # the values files of chart-testing
        files = {file.stem.removesuffix("-values"): [file] for file in sorted(path.glob("ci/*-values.yaml"))}
        subject = replace(subject, presets=files)
    return _examined(subject, "" if subject.faults else read.digest, settings)


def _examined(subject: Subject, digest: str, settings: Settings) -> Outcome:
    subject = replace(subject, versions=settings.config.kubernetes)
    key = cache.key_of(subject, digest, settings.folders) if digest and settings.cache else ""
    if key and (known := cache.remembered(key)) is not None:
        return _without_ignored(Outcome(known), subject.chart, settings.config)
    done = run_steps(subject, settings.limits.step)
    if key:
        cache.remember(key, done.findings)
    renders = [rendering.kubernetes for rendering in done.renderings]
    return _without_ignored(Outcome(done.findings, done.steps, renders=renders), subject.chart, settings.config)


def _without_ignored(done: Outcome, chart: Chart, config: Config) -> Outcome:
    """Leave out good practice that was not requested: in third-party charts, unless the settings request it."""
    if (config.level or _level(chart)) == "style":
        return done
    kept = [finding for finding in done.findings if finding.level != "style" or finding.rule in config.select]
    return replace(done, findings=kept, hidden=len(done.findings) - len(kept))


def _level(chart: Chart) -> Level:
    # The target states the allowed privileges of a chart's pods: without a known target, they cannot be judged.
    return "breaks" if isinstance(origin_of(chart), Foreign | Unknown) else "style"


def _target(name: str, settings: Settings) -> Target:
    names = settings.library.names("target")
    if name not in names:
        known = "give a chart's folder or archive, a values file or a target, with --path one of your own"
        hint = did_you_mean(name, names) or known
        raise UsageError(Problem(f"{name!r} is neither a folder, a file nor a target", hint=hint))
    return load_target(name, settings.library)


def _composed(target: Target, settings: Settings, build: Callable[..., Chart | None]) -> Outcome:
    chart = build(target, settings.workload)
    return _examined(_subject(chart, settings), "", settings) if chart else Outcome([], [])


def _subject(chart: Chart, settings: Settings) -> Subject:
    """Render a chart with only the values of the call, as Helm does; without them, with no values and every preset."""
    if given := settings.values.layers:
        presets = {" + ".join(str(layer.source) for layer in given): settings.values}
        return Subject(chart, presets=presets, bare=False)
    # a chart of another kind, TARGET-KIND, has the presets and the site file of its target
    name = origin_of(chart).name or chart.name
    try:
        found = find_presets(name, settings.config.presets)
        for folder in settings.folders:
            found |= find_presets(name, folder / "values", base=VALUES)
        site = _site(name, [*(folder / "values" for folder in settings.folders), settings.config.presets])
    except ChartgenError as error:
        return Subject(chart, faults=[Finding("chart-files", problem) for problem in error.problems])
    return Subject(chart, presets=_offered(found, chart), site=site)


def _offered(presets: dict[str, list[Path]], chart: Chart) -> dict[str, list[Path]]:
    """Return the presets of a chart's target without those of launchers that are for other workload kinds."""
    origin = origin_of(chart)
    if not isinstance(origin, Composed):
        return presets
    others = {launcher.name for launcher in origin.target.left_out}
    return {name: files for name, files in presets.items() if _launcher(files) not in others} if others else presets


def _launcher(files: Sequence[Path]) -> str:
    """Return the launcher of values files; empty where they name none, or cannot be read, which the linter reports."""
    try:
        return str(load_values(files).data.get("launcher", ""))
    except ChartgenError:
        return ""


def _site(name: str, folders: Sequence[Path]) -> Path | None:
    """Return the example of a target's site file, of the first folder that has one."""
    found = next((file for folder in folders if (file := folder / f"site.{name}.example.yaml").is_file()), None)
    if found and (escapes(found, found.parent) or escapes(found, Path.cwd())):
        raise ChartgenError(rejected_path("example", "is a link out of the folder of presets", found))
    return found


def _found(folder: Path) -> tuple[str, ...]:
    if (folder / "Chart.yaml").is_file():
        return (".",)
    if any(folder.glob("charts/*/Chart.yaml")):
        if escapes(folder / "charts", folder):
            raise UsageError(rejected_path("charts", "is a link out of the repository", folder / "charts"))
        return ("charts",)
    raise UsageError(Problem("no chart is named, and none is in this folder", hint="give a chart's folder or a target"))
