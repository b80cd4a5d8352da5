"""Run Helm for lint: `helm lint` and `helm template` for every preset and Kubernetes version, in parallel."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.findings import Finding
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import Manifest, manifests
from chartgen.helm.program import Helm, HelmError, explain_helm, find_helm
from chartgen.helm.values import to_json
from chartgen.helm.yaml import Plain
from chartgen.kube.manifest_walk import LINT_NAMESPACE, LINT_RELEASE

# Release and namespace in findings, whatever names the templates saw.
NAMES = (LINT_RELEASE, LINT_NAMESPACE)
# Helm's messages when a chart's own `fail`, `required` or schema rejects values, or when it lacks global values, which
# the chart around it gives; then where a chart without values.yaml reads one.
_ASKS = ("execution error at (", "meet the specifications of the schema", " at <.Values.global.")
_ASKS_FOR_ALL = (*_ASKS, "nil pointer evaluating", "got interface {}")
_HELM_LINE = re.compile(r"\[(?P<level>ERROR|WARNING)\] (?P<path>[^:]+): (?P<text>.*)", re.DOTALL)
_OLD = " is deprecated in v"
_SET = re.compile("(?<=is missing these dependencies: ).+")  # Helm lists them in another order each time
# Templates that include each other repeat this a thousand times before the relevant sentence.
# Bounded, and anchored at the start of a word, so that no line is scanned repeatedly.
_CALLS = re.compile(
    r'(?:(?:template: [^\s:]{1,300}:[\d:]{1,20} )?executing "[^"\n]{0,200}" at <[^\n]{0,200}?>: '
    r"error calling \w{1,50}: ){4,}"
)
_PLACE = re.compile(r"(?<![\w./-])(?P<path>[\w./-]+\.(?:yaml|yml|tpl|txt)):(?P<line>\d{1,9})(?::\d+)?")


@dataclass(frozen=True)
class Preset:
    """Values to render a chart with."""

    name: str = ""  # their name; empty for no values
    data: dict[str, Plain] = field(default_factory=dict, compare=False)  # the values, merged
    # The file to change when the chart rejects them; the chart's own defaults for no values
    file: Path | str = "values.yaml"


@dataclass(frozen=True)
class Rendering:
    """Result of rendering a chart."""

    preset: Preset
    kubernetes: str  # the Kubernetes version that the templates saw
    text: str

    @property
    def manifests(self) -> list[Manifest]:
        """Return its objects; raise ChartgenError for a document that is not valid YAML, or not a map."""
        return _manifests(self.text)


@lru_cache(maxsize=64)
def _manifests(text: str) -> list[Manifest]:
    """Read each text once: renders for two Kubernetes versions are mostly equal."""
    return [manifest for manifest in manifests(text) if isinstance(manifest.document.data, dict)]


@dataclass(frozen=True)
class RefusedRender:
    """Helm's refusal to render a chart."""

    preset: Preset
    problems: tuple[Problem, ...]  # the reasons; a path in them begins with the chart's name
    asks: bool = False  # whether the chart itself rejects the values: by `fail`, `required` or its schema


def drawn_names(chart: Chart) -> tuple[str, str]:
    """Draw a release's name and a namespace that no template can expect, in the forms that people use.

    With fixed names, a template could render something else for lint than for everybody. `Renderer` replaces them in
    Helm's output.
    """
    new = (name for name in iter(_drawn, "") if not any(name in text for text in chart.files.values()))
    return next(new), next(new)


def _drawn() -> str:
    word = "".join(secrets.choice("bcdfghjklmnpqrstvwxz") + secrets.choice("aeiouy") for _ in range(4))
    return word[: secrets.choice((7, 8))] + secrets.choice(("", "", f"-{secrets.randbelow(100)}", "-run", "1"))


@dataclass(frozen=True)
class Renderer:
    """Runs Helm on a chart's folder."""

    folder: Path
    helm: Helm = field(default_factory=find_helm)
    # Whether Helm applies the chart's schemas; false if one of them has an outside reference, which Helm would fetch
    schemas: bool = True
    names: tuple[str, str] = NAMES  # the release's name and namespace that templates see
    pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(min(4, (os.cpu_count() or 1) + 1)), repr=False, compare=False
    )

    def close(self, *, wait: bool = True) -> None:
        """Stop the threads; cancel work that has not started."""
        self.pool.shutdown(wait=wait, cancel_futures=True)

    def lint(self, values: dict[str, Plain], kubernetes: str) -> Future[list[Finding]]:
        """Start `helm lint --strict`."""
        return self.pool.submit(self._lint, values, kubernetes)

    def template(self, preset: Preset, kubernetes: str, *, upgrade: bool = False) -> Future[Rendering | RefusedRender]:
        """Start `helm template`, for an install or an upgrade."""
        return self.pool.submit(self._template, preset, kubernetes, upgrade)

    def _lint(self, values: dict[str, Plain], kubernetes: str) -> list[Finding]:
        try:
            report = self._run(["lint", "--strict"], values, kubernetes)
        except HelmError as error:
            if not error.stdout:
                return [Finding("helm-lint", with_preset(problem, Preset("", values))) for problem in error.problems]
            report = error.stdout
        report = report.replace(f"{self.folder.absolute()}/", "").replace(str(self.folder.absolute()), "Chart.yaml")
        return list(_lines_of_lint(report))

    def _template(self, preset: Preset, kubernetes: str, upgrade: bool) -> Rendering | RefusedRender:  # noqa: FBT001
        release, namespace = self.names
        command = ["template", "--namespace", namespace, *(["--is-upgrade"] if upgrade else [])]
        try:
            return Rendering(preset, kubernetes, self._run(command, preset.data, kubernetes, release))
        except MissingToolError:
            raise
        except ChartgenError as error:
            output = error.stderr if isinstance(error, HelmError) else ""
            asks = _ASKS if preset.name or (self.folder / "values.yaml").exists() else _ASKS_FOR_ALL
            return RefusedRender(preset, tuple(error.problems), any(words in output for words in asks))

    def _run(self, command: Sequence[str], values: dict[str, Plain], kubernetes: str, *words: str) -> str:
        """Run Helm on the folder: by its absolute path and behind `--`, so that no name is parsed as a flag."""
        flags = ["--kube-version", f"{kubernetes}.0", "--values", "-"]
        flags += [] if self.schemas else ["--skip-schema-validation"]
        argv = [*command, *flags, "--", *words, str(self.folder.absolute())]
        try:
            return self._renamed(self.helm.render(argv, to_json(values)))
        except HelmError as error:
            raise HelmError(self._renamed(error.stderr), self._renamed(error.stdout)) from None

    def _renamed(self, text: str) -> str:
        for drawn, name in zip(self.names, NAMES, strict=True):
            text = text.replace(drawn, name)
        return text


def with_preset(problem: Problem, preset: Preset | None) -> Problem:
    """Add the preset and the place to a problem: a template, or else the preset.

    Args:
        problem: Helm's problem; a path in it begins with the chart's name.
        preset: The values; None if they do not matter.
    """
    message = _CALLS.sub("", problem.message)
    if preset:
        message = f"with {preset.name or 'no values'}: {message}"
    if problem.path is None:
        return Problem(message, preset.file if preset else "templates", 1 if preset else 0, 0, problem.hint)
    path = problem.path.partition("/")[2] or problem.path if isinstance(problem.path, str) else problem.path
    return problem._replace(message=message, path=path)


def _lines_of_lint(report: str) -> Iterator[Finding]:
    """Read the report of `helm lint`: after each level and path, one message of one or more lines."""
    for block in re.split(r"^(?=\[|Error: )", report, flags=re.MULTILINE):
        match = _HELM_LINE.match(block)
        if not match:
            continue
        first, *more = [line for line in match["text"].splitlines() if line.strip()] or [""]
        if more and match["path"].startswith("templates"):
            found = [with_preset(problem, None) for problem in explain_helm("\n".join((first, *more)))]
        else:
            text = _SET.sub(lambda names: ",".join(sorted(names[0].split(","))), " ".join(match["text"].split()))
            found = [_placed(text, match["path"].strip())]
        # Helm warns about objects in a template that an API server rejects. Of an old API version it warns even where
        # the template asks for a newer one, whose kinds its lint does not know; `kinds-are-served` judges the render.
        mild = not re.match("templates/.", match["path"]) or _OLD in match["text"]
        rule = "helm-lint-strict" if match["level"] == "WARNING" and mild else "helm-lint"
        yield from (Finding(rule, problem) for problem in found)


def _placed(text: str, path: str) -> Problem:
    """Return a problem of `helm lint` with its place: the innermost place of a template's error."""
    places, text = list(_PLACE.finditer(text)), _CALLS.sub("", text)
    if not places:
        return Problem(text, path)
    inner = places[-1]["path"].partition("/")[2] or places[-1]["path"]
    return Problem(text, inner if "templates/" in inner else path, int(places[-1]["line"]))
