"""One call of lint: which charts, with which settings; their findings together, those that count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chartgen.apitypes import kubernetes_versions
from chartgen.chart import Chart
from chartgen.composer import compose, compose_setup
from chartgen.errors import Problem, UsageError, did_you_mean
from chartgen.findings import Finding, in_order
from chartgen.library import Library, open_library
from chartgen.linter import cache, find_presets
from chartgen.linter.config import Config, read_config
from chartgen.linter.files import read_chart
from chartgen.linter.handwritten import lint_values
from chartgen.linter.ladder import Step, Subject, examine
from chartgen.linter.rules import known_ids
from chartgen.linter.selection import beyond, read_baseline, selected
from chartgen.origin import origin_of
from chartgen.target import load_target
from chartgen.values import Values
from chartgen.yamltext import load_file

Told = Callable[[str, Sequence[Step] | None], None]


@dataclass(frozen=True)
class Settings:
    """What one call of lint was asked for.

    Args:
        config: The repository's settings with the command line's over them.
        charts: Folders, values files and targets.
        library: Where targets are found.
        values: Values given on the command line.
        workload: Another workload kind than the targets' own.
        cache: Whether what is known of unchanged charts is taken.
    """

    config: Config
    charts: tuple[str, ...]
    library: Library
    values: Values
    workload: str | None = None
    cache: bool = True

    @classmethod
    def of(cls, folder: Path, charts: Sequence[str], path: Sequence[Path], values: Values, **options: Any) -> Settings:
        """Put together the settings of a folder and those of a call.

        Args:
            folder: The folder that may hold a configuration.
            charts: What the call names; empty for the configuration's charts.
            path: The user's own folders of targets and fragments.
            values: Values given.
            options: Fields of `Config`, `workload` and `cache`.

        Raises:
            UsageError: No chart is named and none found, or a setting is wrong.
        """
        own = {key: options.pop(key) for key in ("workload", "cache") if key in options}
        config = replace(read_config(folder), **options)
        if unknown := [each for each in config.kubernetes if each not in kubernetes_versions()]:
            hint = "known: " + ", ".join(kubernetes_versions())
            raise UsageError(Problem(f"there are no schemas of Kubernetes {each}", hint=hint) for each in unknown)
        named = tuple(charts) or config.charts or _found(folder)
        return cls(config, named, open_library(path), values, **own)

    @property
    def name(self) -> str:
        """What the findings are about, in one word."""
        return self.charts[0] if len(self.charts) == 1 else "lint"


def lint_all(settings: Settings, tell: Told) -> list[Finding]:
    """Lint all charts of a call.

    Args:
        settings: What to lint.
        tell: Gets each chart's name and its steps; None for one that has not changed since it was last checked.

    Returns:
        The findings that count, sorted by place.

    Raises:
        UsageError: Something that is neither a chart, a values file nor a target, or an unknown rule.
        MissingToolError: There is no fitting Helm.
    """
    config = settings.config
    known = known_ids()
    selected([], select=config.select, ignore=config.ignore, known=known)
    baseline = read_baseline(config.baseline) if config.baseline else None
    found = [each for name in settings.charts for each in _lint(name, settings, tell)]
    counting = selected(in_order(found), select=config.select, ignore=config.ignore, known=known)
    return counting if baseline is None else beyond(counting, baseline)


def _lint(name: str, settings: Settings, tell: Told) -> Iterator[Finding]:
    path = Path(name)
    if path.is_dir() and not (path / "Chart.yaml").exists() and (inner := sorted(path.glob("*/Chart.yaml"))):
        for file in inner:
            yield from _folder(file.parent, settings, tell)
    elif path.is_dir():
        yield from _folder(path, settings, tell)
    elif path.is_file():
        yield from lint_values(load_file(path))
    else:
        for chart in _composed(name, settings):
            yield from _examined(_subject(chart, settings), "", settings, tell)


def _folder(path: Path, settings: Settings, tell: Told) -> Iterator[Finding]:
    read = read_chart(path)
    chart = read.chart.identified(settings.library)
    subject = replace(_subject(chart, settings), folder=path, faults=read.findings)
    if not subject.presets and (presets := _values_of_ci(path)):
        subject = replace(subject, presets=presets, bare=False)
    yield from _examined(subject, read.digest, settings, tell)


def _examined(subject: Subject, digest: str, settings: Settings, tell: Told) -> list[Finding]:
    subject = replace(subject, versions=settings.config.kubernetes)
    name = str(subject.folder or subject.chart.name)
    key = cache.key_of(subject, digest, settings.library.roots[1:]) if digest and settings.cache else ""
    if key and (known := cache.remembered(key)) is not None:
        tell(name, None)
        return known
    done = examine(subject)
    if key:
        cache.remember(key, done.findings)
    tell(name, done.steps)
    return done.findings


def _composed(name: str, settings: Settings) -> Iterator[Chart]:
    names = settings.library.names("target")
    if name not in names:
        hint = did_you_mean(name, names) or "give a chart's folder, a values file or a target"
        raise UsageError(Problem(f"{name!r} is neither a folder, a file nor a target", hint=hint))
    target = load_target(name, settings.library)
    yield compose(target, settings.workload)
    if setup := compose_setup(target):
        yield setup


def _subject(chart: Chart, settings: Settings) -> Subject:
    """Try a chart with the values of the call and nothing else, as Helm does; else with none and with every preset."""
    if given := settings.values.layers:
        presets = {" + ".join(str(layer.source) for layer in given): settings.values}
        return Subject(chart, presets=presets, bare=False)
    origin = origin_of(chart)
    name = origin.name if origin.setup else chart.name
    return Subject(chart, presets=find_presets(name, settings.config.presets))


def _values_of_ci(path: Path) -> dict[str, list[Path]]:
    """Give the values that chart-testing tries a chart with, in place of none: ci/*-values.yaml."""
    return {file.stem.removesuffix("-values"): [file] for file in sorted(path.glob("ci/*-values.yaml"))}


def _found(folder: Path) -> tuple[str, ...]:
    if (folder / "Chart.yaml").is_file():
        return (".",)
    if any(folder.glob("charts/*/Chart.yaml")):
        return ("charts",)
    raise UsageError(Problem("no chart is named, and there is none here", hint="give a chart's folder or a target"))
