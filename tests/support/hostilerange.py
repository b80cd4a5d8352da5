"""Where hostile inputs are tried: each goes through chartgen in a cage of its own, in folders that are made anew."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from unittest.mock import patch

from caged import GIGA, ROOT, TRACER, Budget, Cage, Verdict, caged, traced
from hostileclusters import serves, silenced
from hostileinputs import Input
from mutators import PAYLOAD, Files
from stranger_api import answering

from chartgen.checks import check
from chartgen.cli import main as chartgen
from chartgen.composer.assembly import compose
from chartgen.composer.library import open_library
from chartgen.composer.origin import identified
from chartgen.composer.target import load_target
from chartgen.data.api_schemas import kubernetes_versions
from chartgen.errors import ChartgenError
from chartgen.findings import Finding, exit_code, in_order
from chartgen.helm.chart import Chart
from chartgen.helm.program import find_helm
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.values import load_values
from chartgen.linter.chart_files import read_chart
from chartgen.linter.determinism import banned_functions
from chartgen.linter.examination import Subject
from chartgen.linter.inspection import Inspection
from chartgen.linter.limits import OutOfTimeError, limited
from chartgen.linter.policy import Reasons
from chartgen.linter.render import Preset, Rendering
from chartgen.linter.schema_references import foreign_references
from chartgen.linter.selection import without_reason
from chartgen.linter.sources import Sources, ignored_there, placed
from chartgen.linter.steps import run_steps
from chartgen.linter.values_coverage import documents
from chartgen.reports import format_findings

_STEP = 5  # seconds for a reader of a chart, which lint gives a quarter of its own limit
BUDGETS = {"lint": Budget(memory=4 * GIGA, resident=3 * GIGA + GIGA // 4, processor=60)}


def _run(made: Input, kind: str, out: Path) -> None:
    argv = [word.replace("{out}", str(out)) for word in made.argv]
    if kind in ("chart", "objects"):
        findings = _read_chart() if kind == "chart" else _inspect()
        text = format_findings(in_order(findings), made.argv[-3] if kind == "chart" else argv[0], checked="x")
        chartgen_print(text)
        sys.exit(exit_code(findings))
    with _answered(out) if kind == "cluster" else nullcontext():
        chartgen(argv, prog_name="chartgen")


@contextmanager
def _answered(out: Path) -> Iterator[None]:
    """Let an input's answers be those of the current cluster, where no CRD is waited for."""
    with (
        answering(out, serves(Path.cwd())) as file,
        patch.dict(os.environ, KUBECONFIG=str(file)),
        patch.multiple("chartgen.kube.cluster", _CRD_SECONDS=1, _UNSEEN_CRD_SECONDS=1),
    ):
        yield


def chartgen_print(text: str) -> None:
    """Print as the command line does."""
    from chartgen.cli.output import guarded

    with guarded():
        print(text)  # noqa: T201


def _read_chart() -> list[Finding]:
    """Read a chart as lint does before it calls Helm."""
    folder = next(Path("charts").iterdir(), Path("charts"))
    found: list[Finding] = []
    try:
        read = read_chart(folder)
        found += read.findings
        chart = identified(read.chart, open_library())
        schemas = {**chart.files, **read.schemas}
        schemas = {path: text for path, text in schemas.items() if path.endswith(SCHEMA_FILE)}
        steps: list[Callable[[], Iterator[Finding] | list[Finding]]] = [
            *(
                partial(without_reason, chart.files),
                partial(foreign_references, schemas),
                partial(banned_functions, chart),
            ),
            partial(documents, chart),
        ]
        if not found and not any(foreign_references(schemas)):
            steps.append(lambda: check(chart, load_values([])))
        for step in steps if not found else steps[:1]:
            found += _limited(step) or []
        kept = [each for each in found if each.rule not in ignored_there(each, chart)]
        sources = Sources(chart)
        return [placed(each, folder, sources) for each in kept]
    except ChartgenError as error:
        return [*found, *(Finding("chart-files", problem) for problem in error.problems)]


def _limited(step: Callable[[], Iterator[Finding] | list[Finding]]) -> list[Finding] | None:
    """Return what a step finds, or None when it is out of time."""
    try:
        with limited(_STEP):
            return list(step())
    except OutOfTimeError:
        chartgen_print("was not checked: out of time")
        return None


def _inspect() -> list[Finding]:
    """Apply lint's rules to what Helm might have rendered."""
    text = Path("rendered.yaml").read_bytes().decode("utf-8", "replace")
    chart = Chart(_SOUND.name, {**_SOUND.files, "templates/all.yaml": text})
    inspection = Inspection(chart, Reasons(chart, as_built=True))
    parts = [_limited(lambda: inspection.read([Rendering(Preset(), "1.37", text)]))]
    parts += [_limited(partial(inspection.findings, step)) for step in inspection.steps]
    found = [each for part in parts for each in part or []]
    # a rule may fail at an object only where the object is wrong, too; what is out of time may have found that
    unanswered = [each for each in found if "cannot check it" in each.problem.message]
    if unanswered and None not in parts and not any(each.rule in _UNFIT for each in found):
        raise AssertionError(str(unanswered[0]))
    return found


_UNFIT = ("objects-fit-their-schema", "kinds-are-known", "kinds-are-served")
_SOUND = Chart.read(ROOT / "tests" / "data" / "lint" / "sound")


class Range:
    """Folders in which inputs are tried, one after another.

    Args:
        folder: An empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.helm = str(find_helm().executable)
        (folder / "outside").mkdir()
        (folder / "outside" / "secret.yaml").write_text(f"token: {PAYLOAD}\n")
        self.tracer = folder / "tracer" / "helm"
        strace = shutil.which("strace")
        if strace:
            self.tracer.parent.mkdir()
            self.tracer.write_text(TRACER.format(strace=strace, folder=self.tracer.parent, helm=self.helm))
            self.tracer.chmod(0o755)

    def judge(self, made: Input, kind: str, *, trace: bool = False) -> Verdict:
        """Try an input."""
        tmp, trace = str(self.folder / "tmp"), trace and kind == "lint" and self.tracer.exists()
        variables = {"TMPDIR": tmp, "KUBECONFIG": "/nonexistent", "CHARTGEN_CACHE": f"{tmp}/cache"}
        variables["CHARTGEN_HELM"] = str(self.tracer) if trace else self.helm
        with patch.dict(os.environ, variables), patch.object(tempfile, "tempdir", tmp):
            return self._judge(made, kind, trace=trace)

    def _judge(self, made: Input, kind: str, *, trace: bool) -> Verdict:
        reads, out, tmp = self.folder / "in", self.folder / "out", self.folder / "tmp"
        for each in (reads, out, tmp):
            shutil.rmtree(each, ignore_errors=True)
            each.mkdir(parents=True)
        write(made.made, reads)
        if trace:
            find_helm()
            traced(self.tracer.parent, Cage(reads, out, tmp), self.helm)
        programs = ("helm", Path(self.helm).name, "bash", "shellcheck")
        talks = kind == "cluster"  # whose doctor starts Helm through a shell, as pyhelm3 does
        cage = Cage(reads, out, tmp, (*programs, *["sh"] * talks), talks=talks)
        verdict = caged(partial(_run, made, kind, out), cage, BUDGETS.get(kind, Budget()))
        if trace:
            verdict.faults += traced(self.tracer.parent, cage, self.helm)
        said = {name: _read(out / name) for name in ("stdout", "stderr")}
        verdict.faults += silenced(made.argv, made.ways, said["stdout"]) if talks else []
        for name, text in said.items():
            if PAYLOAD in text:
                verdict.faults.append(f"outside: a secret beside the input is printed on {name}")
        return verdict


def _read(file: Path) -> str:
    return file.read_bytes().decode("utf-8", "replace") if file.exists() else ""


def write(made: Files, folder: Path) -> None:
    """Write an input's files; a name that is a file already, or none for this system, is left out."""
    for path, data in made.files.items():
        with suppressed():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    for path, target in made.links.items():
        with suppressed():
            (folder / path).unlink(missing_ok=True)
            (folder / path).symlink_to(target)
    for path in made.pipes:
        with suppressed():
            (folder / path).unlink(missing_ok=True)
            os.mkfifo(folder / path)


class suppressed:  # noqa: N801 it stands where contextlib.suppress would
    """What this file system does not take."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, (OSError, ValueError))


def warm() -> None:
    """Import and read in the parent what every input would import and read again."""
    run_steps(Subject(_SOUND, versions=kubernetes_versions("")[-1:]))
    check(compose(load_target("gke-a3mega")), load_values([]))
    logs = sorted((ROOT / "tests" / "data" / "logs").iterdir())
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        for argv in (*(["metrics", str(log)] for log in logs), ["list", "targets"], ["check", "oke-h100"]):
            chartgen(argv, standalone_mode=False) if argv[0] == "list" else _quiet(argv)


def _quiet(argv: list[str]) -> None:
    with suppress(SystemExit):
        chartgen(argv, prog_name="chartgen")
