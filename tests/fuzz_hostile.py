"""Hostile input at random: mutations of real charts and logs, of which none may hang, crash, leave its folder or steer.

    make fuzz-hostile                                       20,000 inputs, seed 1
    python tests/fuzz_hostile.py --count 500 --seed 7       fewer, as of seed 7
    python tests/fuzz_hostile.py --only log:17 --seed 7     one of them again

The charts are this repository's and those of a folder (`--charts`, or CHARTGEN_CHARTS), such as fetched ones of others;
the logs are those of CHARTGEN_CORPUS and of tests/data. What goes through what is printed. An input that makes a fault
is kept, shrunk, with the command that tries it again. tests/caged.py says what a fault is.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from math import inf
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from caged import GIGA, ROOT, TRACER, Budget, Cage, Verdict, caged, traced
from mutators import LOG, ODD, PAYLOAD, SCHEMA, TEXT, Files, Mutator, moved, mutated, twisted
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from chartgen.apitypes import kubernetes_versions
from chartgen.chart import Chart
from chartgen.checks import check
from chartgen.cli import main as chartgen
from chartgen.composer import compose
from chartgen.errors import ChartgenError
from chartgen.findings import Finding, exit_code, in_order
from chartgen.helm import find_helm
from chartgen.library import open_library
from chartgen.linter.determinism import banned_functions
from chartgen.linter.documents import documents
from chartgen.linter.files import read_chart
from chartgen.linter.ignores import without_reason
from chartgen.linter.inspection import Inspection
from chartgen.linter.ladder import Subject, examine
from chartgen.linter.limits import OutOfTimeError, limited
from chartgen.linter.placing import ignored_there, placed
from chartgen.linter.reasons import Reasons
from chartgen.linter.rendering import Preset, Rendering
from chartgen.linter.schema_references import NAME, foreign_references
from chartgen.manifests import objects, render
from chartgen.reports import report
from chartgen.target import load_target
from chartgen.values import load_values

# Kind of input -> what it goes through, and its share of all.
KINDS = {
    "log": ("chartgen metrics, every form of output", 0.375),
    "lint": ("chartgen lint of a chart, with Helm", 0.2),
    "chart": ("lint's readers of a chart's files and schemas, without Helm", 0.15),
    "objects": ("lint's rules for rendered objects, without Helm", 0.125),
    "values": ("chartgen lint, check and convert of a values file, and lint's settings; without Helm", 0.1),
    "library": ("chartgen show, list and build of targets and fragments of --path; without Helm", 0.05),
}
_TRACED = 10  # of so many charts that go through Helm one goes through strace, too
_LARGEST = 3 << 20  # bytes of a chart that is taken as material
_EXCERPT = 100_000  # bytes of a log that is taken, most times
_BATCH = 25
_TRIES = 40  # to shrink an input
_FORMS = ("text", "json", "sarif", "junit", "github")
_STEP = 5  # seconds for a reader of a chart, which lint gives a quarter of its own limit
BUDGETS = {"lint": Budget(memory=4 * GIGA, resident=3 * GIGA + GIGA // 4, processor=60)}


@dataclass
class Material:
    """What is mutated.

    Args:
        charts: Charts as path -> bytes, of this repository first.
        logs: Logs, unpacked.
        values: Values files.
        libraries: Folders of targets and fragments.
        manifests: Rendered objects of this repository's charts, a list for each.
        counts: How many of each, for people.
    """

    charts: list[dict[str, bytes]]
    logs: list[bytes]
    values: list[bytes]
    libraries: list[dict[str, bytes]]
    manifests: list[list[Any]]
    counts: str


def collect(charts: Path | None, corpus: Path | None) -> Material:
    """Read the material: this repository's, and what others have given."""
    own = [_folder(file.parent) for file in sorted(ROOT.glob("charts/*/Chart.yaml"))]
    own.append(_folder(ROOT / "tests" / "data" / "lint" / "sound"))
    foreign = [_folder(file.parent) for file in sorted(charts.rglob("Chart.yaml"))] if charts else []
    foreign = [each for each in foreign if sum(map(len, each.values())) <= _LARGEST]
    genuine = (
        [_log(path) for path in sorted(corpus.rglob("*")) if path.is_file() and path.suffix != ".json"]
        if corpus
        else []
    )
    logs = [path.read_bytes() for path in sorted((ROOT / "tests" / "data" / "logs").iterdir())]
    values = [
        path.read_bytes() for path in sorted([*ROOT.glob("values/**/*.yaml"), *ROOT.glob("tests/data/recipes/*")])
    ]
    libraries = [_folder(path) for path in sorted((ROOT / "tests" / "data" / "defects").iterdir())]
    manifests = [
        objects(render(compose(load_target(name)), "run", "ml", {})) for name in open_library().names("target")
    ]
    counts = (
        f"{len(own)} charts of this repository, {len(foreign)} of others; {len(logs)} logs of this repository, "
        f"{len(genuine)} of others; {len(values)} values files, {len(libraries)} libraries"
    )
    return Material([*own, *foreign], [*logs, *genuine], values, libraries, manifests, counts)


def _folder(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def _log(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


@dataclass
class Input:
    """One input.

    Args:
        made: Its files.
        argv: The arguments of chartgen, or of this module's own readers.
        ways: How it was made.
    """

    made: Files = field(default_factory=Files)
    argv: list[str] = field(default_factory=list)
    ways: list[str] = field(default_factory=list)


def invent(kind: str, number: int, seed: int, material: Material) -> Input:
    """Make an input, always the same one for a kind, number, seed and material."""
    rng = Random(f"{seed}/{kind}/{number}")
    made = Input()
    _INVENT[kind](made, rng, material)
    return made


def _take(made: Input, path: str, data: bytes, rng: Random, others: Sequence[bytes], ways: Sequence[Mutator]) -> None:
    made.made.files[path], names = mutated(data, rng, others, ways)
    made.ways += [f"{name} {path}" for name in names]


_LOGS = [
    "run.log",
    "run.log",
    "run.log.gz",
    "-run.log",
    "a\x1b[2J\n::set-env name=x::.log",
    "events.out.tfevents.1.x",
    "é\u202e",
]
_MODEL = ["--model", "llama2-70b", "--sequence", "4096", "--gpus", "64", "--gpu", "h100", "--batch", "256"]
_OF_METRICS = [
    *(
        [],
        [],
        ["--output", "json"],
        ["--output", "csv"],
        ["--prometheus"],
        ["--window", "all"],
        ["--report", "{out}/r.html"],
    ),
    *(
        [*_MODEL],
        [*_MODEL, "--output", "json"],
        ["--run", "2"],
        ["--window", "5:9"],
        ["--baseline", "{log}", "--fail-below", "5"],
    ),
    *(
        [*_MODEL, "--machines", "8", "--price", "90", "--report", "{out}/r.html"],
        ["--window", "all", "--output", "csv"],
    ),
]


def _invent_log(made: Input, rng: Random, material: Material) -> None:
    names = [rng.choice(_LOGS)]
    if rng.random() < 0.1:
        names = [f"logs/{name}" for name in ("0.log", "1.log", rng.choice(_LOGS))]
        made.made.links["logs/link"] = rng.choice(["/dev/zero", "../../../outside/secret.yaml", ".", "nowhere"])
        made.made.pipes += ["logs/pipe"] if rng.random() < 0.3 else []
    for name in names:
        data = rng.choice(material.logs)
        if rng.random() < 0.9 and len(data) > _EXCERPT:
            begin = rng.choice([0, rng.randrange(len(data) - _EXCERPT)])
            data = data[begin : begin + _EXCERPT]
        _take(made, name, data, rng, material.logs, LOG)
    place = names[0] if len(names) == 1 else "logs"
    options = [word.replace("{log}", place) for word in rng.choice(_OF_METRICS)]
    made.argv = ["metrics", *options, "--", place]


def _invent_chart(made: Input, rng: Random, material: Material) -> None:
    own = 11
    many = material.charts[own:] or material.charts[own - 1 : own]
    bases = [material.charts[own - 1], rng.choice(many), rng.choice(material.charts[:own])]
    chart = dict(rng.choices(bases, [5, 4, 1])[0])
    root = rng.choice(
        ["charts/x", "charts/x", "charts/--post-renderer=x", "charts/a\n::stop-commands::x", "charts/é \x1b[2J"]
    )
    made.made.files = {f"{root}/{path}": data for path, data in chart.items()}
    for _each in range(rng.choice([1, 1, 2])):
        _change(made, root, rng, material)
    if rng.random() < 0.2:
        _settings(made, rng)
    made.argv = [
        "lint",
        "--no-cache",
        "--limit",
        "20",
        "--kubernetes",
        "1.36",
        "--output",
        rng.choice(_FORMS),
        "--",
        "charts",
    ]


def _change(made: Input, root: str, rng: Random, material: Material) -> None:
    files = made.made.files
    inner = {path: data for path, data in files.items() if path.startswith(f"{root}/")}
    way = rng.choice(["bytes", "bytes", "tree", "tree", "schema", "objects", "objects", "moved", "name", "preset"])
    made.ways.append(way)
    if way == "bytes" and inner:
        path = rng.choice(sorted(inner))
        _take(made, path, inner[path], rng, list(inner.values()), TEXT)
    elif way == "tree":
        path = f"{root}/{rng.choice(['values.yaml', 'Chart.yaml', 'values.schema.json'])}"
        files[path] = _json(twisted(_plain(files.get(path, b"")), rng, SCHEMA if path.endswith("json") else ODD))
    elif way == "schema":
        schema = _plain(files.get(f"{root}/{NAME}", b"")) or {"properties": {"a": {"type": "string"}}}
        values = _plain(files.get(f"{root}/values.yaml", b""))
        files[f"{root}/{NAME}"] = _json(twisted(schema, rng, SCHEMA))
        files[f"{root}/values.yaml"] = _json({**(values if isinstance(values, dict) else {}), "a": "a" * 40 + "!"})
    elif way == "objects":
        things = twisted(rng.choice(material.manifests), rng, ODD)
        kept = {path: data for path, data in files.items() if "/templates/" not in path and not path.endswith(NAME)}
        made.made.files = {
            **kept,
            f"{root}/templates/all.yaml": _documents(things).replace("{{", "{ {").encode("utf-8", "replace"),
        }
    elif way == "moved":
        made.ways.append(moved(made.made, root, rng))
    elif way == "name":
        head = _plain(files.get(f"{root}/Chart.yaml", b""))
        head = head if isinstance(head, dict) else {}
        files[f"{root}/Chart.yaml"] = _json(
            {**head, rng.choice(["name", "version", "type", "dependencies"]): rng.choice(ODD)}
        )
    elif way == "preset":
        name = (_plain(files.get(f"{root}/Chart.yaml", b"")) or {}).get("name")
        _take(
            made,
            f"values/{name}/p.yaml" if _safe(name) else "values/p.yaml",
            rng.choice(material.values),
            rng,
            material.values,
            TEXT,
        )


def _safe(name: object) -> bool:
    return isinstance(name, str) and bool(re.fullmatch(r"[a-z0-9-]+", name))


_TABLES = [
    *(
        '[lint]\ncharts = ["--post-renderer=./x"]\n',
        '[lint]\ncharts = ["../outside"]\n',
        "[lint]\nselect = [7]\n",
        "[lint",
    ),
    *(
        '[lint]\npresets = "/etc"\n',
        '[lint]\nbaseline = "known.json"\n',
        '[lint]\nignore = ["no-system-folders"]\n',
        "[lint]\nx=1\n",
    ),
    *(
        '[lint]\nstrict = "yes"\n',
        "lint = 7\n",
        '[lint]\nbaseline = "/dev/zero"\n',
        '[lint]\nkubernetes = ["9.9"]\n',
        "a=" + "[" * 5000,
    ),
]


def _settings(made: Input, rng: Random) -> None:
    table = rng.choice(_TABLES).encode()
    file = rng.choice(["chartgen.toml", "pyproject.toml"])
    _take(made, file, table.replace(b"[lint]", b"[tool.chartgen.lint]") if "py" in file else table, rng, [table], TEXT)
    known = {"findings": [{"rule": "x", "path": "y", "message": "z", "count": 1}]}
    made.made.files["known.json"] = _json(twisted(known, rng, ODD))


def _invent_objects(made: Input, rng: Random, material: Material) -> None:
    text = _documents(twisted(rng.choice(material.manifests), rng, ODD)).encode("utf-8", "replace")
    made.made.files["rendered.yaml"] = text
    if rng.random() < 0.2:
        _take(made, "rendered.yaml", text, rng, [text, *material.values], TEXT)
    made.argv = [rng.choice(_FORMS)]


def _invent_values(made: Input, rng: Random, material: Material) -> None:
    data = rng.choice(material.values)
    if rng.random() < 0.5:
        made.made.files["v.yaml"] = _json(twisted(_plain(data), rng, ODD))
    else:
        _take(made, "v.yaml", data, rng, material.values, TEXT)
    target = rng.choice(list(open_library().names("target")))
    form = rng.choice(_FORMS)
    made.argv = rng.choice(
        [
            ["lint", "--no-cache", "--limit", "20", "--output", form, "v.yaml"],
            ["check", target, "-f", "v.yaml", "--output", form],
            ["convert", "--from", "gpu-recipes", "v.yaml", "-d", "{out}/values"],
            [
                "check",
                "gke-a3mega",
                "--set",
                f"x={made.made.files['v.yaml'][:200].decode('utf-8', 'replace')}".replace("\0", ""),
            ],
        ]
    )
    if made.argv[0] == "lint" and rng.random() < 0.3:
        _settings(made, rng)


def _invent_library(made: Input, rng: Random, material: Material) -> None:
    files = dict(rng.choice(material.libraries))
    made.made.files = {f"lib/{path}": data for path, data in files.items()}
    for path in rng.sample(sorted(made.made.files), min(2, len(files))):
        _take(made, path, made.made.files[path], rng, list(files.values()), TEXT)
    if rng.random() < 0.3:
        folder = rng.choice(sorted({os.path.dirname(path) for path in made.made.files}))  # noqa: PTH120 a name, no file
        made.made.links[f"{folder}/{rng.choice(['beforeLaunch.sh', 'env.yaml', 'x'])}"] = (
            "../../../../outside/secret.yaml"
        )
    targets = [path.rpartition("/")[2].removesuffix(".yaml") for path in files if path.startswith("targets/")] or ["x"]
    made.argv = rng.choice(
        [
            *(["show", targets[0], "--path", "lib"], ["build", targets[0], "--path", "lib", "-d", "{out}"]),
            ["list", rng.choice(["targets", "fragments", "launchers"]), "--path", "lib"],
        ]
    )


_INVENT: dict[str, Callable[[Input, Random, Material], None]] = {
    "log": _invent_log,
    "lint": _invent_chart,
    "chart": _invent_chart,
    "objects": _invent_objects,
    "values": _invent_values,
    "library": _invent_library,
}


@cache
def _plain_of(data: bytes) -> str:
    try:
        return json.dumps(YAML(typ="safe", pure=False).load(data), default=str)
    except (YAMLError, ValueError, TypeError, RecursionError, UnicodeError):
        return "null"


def _plain(data: bytes) -> Any:
    return json.loads(_plain_of(data)) if len(data) < GIGA >> 10 else None


def _json(tree: Any) -> bytes:
    return json.dumps(tree).encode()


def _documents(things: Any) -> str:
    many = things if isinstance(things, list) else [things]
    return "".join(f"---\n# Source: x/templates/all.yaml\n{json.dumps(each, indent=1)}\n" for each in many)


# What runs in the cage


def _run(made: Input, kind: str, out: Path) -> None:
    argv = [word.replace("{out}", str(out)) for word in made.argv]
    if kind in ("chart", "objects"):
        findings = _read_chart() if kind == "chart" else _inspect()
        text = report(in_order(findings), made.argv[-3] if kind == "chart" else argv[0], checked="x")
        chartgen_print(text)
        sys.exit(exit_code(findings))
    chartgen(argv, prog_name="chartgen")


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
        chart = read.chart.identified(open_library())
        schemas = {path: text for path, text in chart.files.items() if path.endswith(NAME)}
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
            found += _limited(step)
        kept = [each for each in found if each.rule not in ignored_there(each, chart)]
        return [placed(each, chart, folder) for each in kept]
    except ChartgenError as error:
        return [*found, *(Finding("chart-files", problem) for problem in error.problems)]


def _limited(step: Callable[[], Iterator[Finding] | list[Finding]]) -> list[Finding]:
    try:
        with limited(_STEP):
            return list(step())
    except OutOfTimeError:
        chartgen_print("was not checked: out of time")
        return []


def _inspect() -> list[Finding]:
    """Apply lint's rules to what Helm might have rendered."""
    text = Path("rendered.yaml").read_bytes().decode("utf-8", "replace")
    inspection = Inspection(_SOUND, Reasons(_SOUND))
    found = _limited(lambda: inspection.read([Rendering(Preset(), "1.36", text)]))
    for step in inspection.steps:
        found += _limited(partial(inspection.findings, step))
    # a rule may fail at an object only where the object is wrong, too
    unanswered = [each for each in found if "cannot look at it" in each.problem.message]
    if unanswered and not any(each.rule in ("objects-fit-their-schema", "kinds-are-known") for each in found):
        raise AssertionError(str(unanswered[0]))
    return found


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
        os.environ |= {"CHARTGEN_HELM": self.helm, "TMPDIR": str(folder / "tmp"), "KUBECONFIG": "/nonexistent"}

    def judge(self, made: Input, kind: str, *, trace: bool = False) -> Verdict:
        """Try an input."""
        reads, out, tmp = self.folder / "in", self.folder / "out", self.folder / "tmp"
        for each in (reads, out, tmp):
            shutil.rmtree(each, ignore_errors=True)
            each.mkdir(parents=True)
        write(made.made, reads)
        tempfile.tempdir = str(tmp)
        trace = trace and kind == "lint" and self.tracer.exists()
        os.environ["CHARTGEN_HELM"] = str(self.tracer) if trace else self.helm
        if trace:
            find_helm()
            traced(self.tracer.parent, Cage(reads, out, tmp), self.helm)
        cage = Cage(reads, out, tmp, ("helm", Path(self.helm).name, "bash", "shellcheck"))
        verdict = caged(partial(_run, made, kind, out), cage, BUDGETS.get(kind, Budget()))
        if trace:
            verdict.faults += traced(self.tracer.parent, cage, self.helm)
        for name in ("stdout", "stderr"):
            if PAYLOAD.encode() in ((out / name).read_bytes() if (out / name).exists() else b""):
                verdict.faults.append(f"outside: a secret beside the input is printed on {name}")
        return verdict


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
    examine(Subject(_SOUND, versions=kubernetes_versions("")[-1:]))
    check(compose(load_target("gke-a3mega")), load_values([]))
    logs = sorted((ROOT / "tests" / "data" / "logs").iterdir())
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        for argv in (*(["metrics", str(log)] for log in logs), ["list", "targets"], ["check", "oke-h100"]):
            chartgen(argv, standalone_mode=False) if argv[0] == "list" else _quiet(argv)


def _quiet(argv: list[str]) -> None:
    with suppress(SystemExit):
        chartgen(argv, prog_name="chartgen")


@dataclass
class Tally:
    """What became of the inputs of one kind."""

    codes: Counter[str] = field(default_factory=Counter)
    ran: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, str, int]] = field(default_factory=list)
    resident: int = 0
    seconds: float = 0
    total: float = 0

    def take(self, kind: str, number: int, verdict: Verdict) -> None:
        """Count an input."""
        self.codes[f"exit {verdict.code}" if verdict.code >= 0 else "no exit"] += 1
        self.codes["stopped at a limit of lint"] += verdict.limited
        self.ran.update(verdict.ran)
        self.resident = max(self.resident, verdict.resident)
        self.seconds = max(self.seconds, verdict.seconds)
        self.total += verdict.seconds
        self.faults += [(fault, kind, number) for fault in verdict.faults]

    def add(self, other: Tally) -> None:
        """Count what another one has counted."""
        self.codes += other.codes
        self.ran += other.ran
        self.faults += other.faults
        self.resident, self.seconds = max(self.resident, other.resident), max(self.seconds, other.seconds)
        self.total += other.total


_MATERIAL: list[Material] = []
_RANGE: list[Range] = []


def try_some(kind: str, numbers: Sequence[int], seed: int) -> Tally:
    """Try inputs of a kind, in a process that tries many."""
    if not _RANGE:
        _RANGE.append(Range(Path(tempfile.mkdtemp(prefix="fuzz-"))))
        warm()
        gc.collect()
        gc.freeze()  # what is there is not looked at again in each child, which would copy its pages
    tally = Tally()
    for number in numbers:
        made = invent(kind, number, seed, _MATERIAL[0])
        verdict = _RANGE[0].judge(made, kind, trace=number % _TRACED == 0)
        tally.take(kind, number, verdict)
    return tally


_PLACE = re.compile(r'File "([^"]+)", line \d+, in (\S+)')


def signature(fault: str) -> str:
    """Return what is the same of a fault in several inputs: its kind, and where an exception came from."""
    kind, _, rest = fault.partition(":")
    if kind == "steers":
        return f"{kind} {rest.rpartition(' ')[2]}"
    places = _PLACE.findall(rest)
    error = rest.strip().splitlines()[-1].partition(":")[0] if rest.strip() else ""
    return f"{kind}: {places[-1]} {error}" if places else f"{kind}: {re.sub(r'[0-9]+', 'N', rest)[:80]}"


def shrink(made: Input, fails: Callable[[Input], bool]) -> Input:
    """Leave out files, then lines, as long as an input still fails, with a few tries."""
    tries = _TRIES
    for path in [*sorted(made.made.files), *made.made.links, *made.made.pipes]:
        smaller = _without(made, path)
        tries -= 1
        if tries > _TRIES // 2 and fails(smaller):
            made = smaller
    for path in sorted(made.made.files):
        size = 2
        while tries > 0 and len(lines := made.made.files[path].splitlines(keepends=True)) >= size:
            parts = [lines[len(lines) * n // size : len(lines) * (n + 1) // size] for n in range(size)]
            for index in range(size):
                tries -= 1
                rest = b"".join(line for n, part in enumerate(parts) for line in part if n != index)
                smaller = _without(made, path)
                smaller.made.files[path] = rest
                if tries > 0 and fails(smaller):
                    made, size = smaller, 2
                    break
            else:
                size *= 2
    return made


def _without(made: Input, path: str) -> Input:
    files = Files(
        {name: data for name, data in made.made.files.items() if name != path},
        {name: target for name, target in made.made.links.items() if name != path},
        [name for name in made.made.pipes if name != path],
    )
    return Input(files, made.argv, made.ways)


def keep(
    faults: list[tuple[str, str, int]], seed: int, material: Material, folder: Path, *, whole: bool = False
) -> list[str]:
    """Keep one input of each sort of fault, shrunk, and say how it is tried again."""
    told = []
    sorts: dict[str, list[tuple[str, str, int]]] = {}
    for each in faults:
        sorts.setdefault(signature(each[0]), []).append(each)
    for sort, (first, *more) in sorts.items():
        fault, kind, number = first
        made = invent(kind, number, seed, material)

        def fails(smaller: Input, kind: str = kind, sort: str = sort) -> bool:
            found = _RANGE[0].judge(smaller, kind, trace=sort.startswith("outside: helm"))
            return any(signature(each) == sort for each in found.faults)

        if not whole and not sort.startswith("endless"):
            made = shrink(made, fails)
        place = folder / f"{kind}-{seed}-{number}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        write(made.made, place)
        again = f"python tests/fuzz_hostile.py --seed {seed} --only {kind}:{number}"
        told += [f"{len(more) + 1} times: {fault}", f"  made by {', '.join(made.ways)}; {made.argv}"]
        told += [f"  kept in {place}; again: {again}"]
    return told


def _shares(count: int) -> list[tuple[str, list[int]]]:
    """Return batches of all kinds, mixed, so that a run which is cut short has some of each."""
    found: list[tuple[float, str, list[int]]] = []
    for kind, (_, share) in KINDS.items():
        numbers = list(range(round(count * share)))
        found += [(at / len(numbers), kind, numbers[at : at + _BATCH]) for at in range(0, len(numbers), _BATCH)]
    return [(kind, numbers) for _, kind, numbers in sorted(found)]


def fuzz(
    count: int, seed: int, material: Material, processes: int, tell: Callable[[str], None], seconds: float = inf
) -> dict[str, Tally]:
    """Try so many inputs, or as many as there is time for, and count."""
    _MATERIAL[:] = [material]
    tallies = {kind: Tally() for kind in KINDS}
    seen: set[str] = set()
    end = time.monotonic() + seconds
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        tries = {pool.submit(try_some, kind, numbers, seed): kind for kind, numbers in _shares(count)}
        for done, each in enumerate(as_completed(tries), 1):
            if each.cancelled():
                continue
            tallies[tries[each]].add(each.result())
            for fault, kind, number in each.result().faults:
                if signature(fault) not in seen:
                    seen.add(signature(fault))
                    tell(f"{kind}:{number} {fault}")
            if done % 20 == 0:
                tell(f"{done * _BATCH:,} inputs, {len(seen)} sorts of faults")
            if time.monotonic() > end:
                pool.shutdown(wait=False, cancel_futures=True)
    return tallies


def figures(tallies: dict[str, Tally]) -> Iterator[str]:
    """Say how many inputs went through what, and what became of them."""
    for kind, tally in tallies.items():
        ends = ", ".join(f"{count:,} {name}" for name, count in sorted(tally.codes.items()) if count)
        total = sum(count for name, count in tally.codes.items() if "exit" in name)
        yield f"{kind:<8} {total:>6,} inputs through {KINDS[kind][0]}"
        yield f"         {ends}; {len(tally.faults)} faults"
        most = f"{tally.resident / 1e6:.0f} MB and {tally.seconds:.1f} s"
        yield f"         at most {most} of processor time for one, {tally.total:.0f} s for all"
        if tally.ran:
            ran = ", ".join(f"{count:,} {name}" for name, count in sorted(tally.ran.items()))
            yield f"         programs started: {ran}"


def main() -> None:
    """Try hostile inputs.

    Raises:
        SystemExit: With 1, when one made a fault.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000, help="inputs, of all kinds together")
    parser.add_argument("--seed", type=int, default=1, help="another one makes other inputs")
    parser.add_argument("--only", metavar="KIND:NUMBER", help="one input again")
    parser.add_argument(
        "--charts", type=Path, default=os.environ.get("CHARTGEN_CHARTS"), help="folder of charts of others"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=inf, help="begin no more inputs after that")
    parser.add_argument(
        "--keep", type=Path, default=ROOT / "build" / "fuzz-hostile", help="folder for inputs with faults"
    )
    parser.add_argument("--whole", action="store_true", help="keep inputs with faults as they are, not shrunk")
    asked = parser.parse_args()
    corpus = next(filter(Path.is_dir, _corpora()), None)
    material = collect(Path(asked.charts) if asked.charts else None, corpus)
    say(f"{material.counts}; seed {asked.seed}")
    say(
        "strace looks at what Helm opens of every tenth chart"
        if shutil.which("strace")
        else "no strace: what Helm opens is not looked at"
    )
    begun = time.monotonic()
    if asked.only:
        kind, _, number = asked.only.partition(":")
        _MATERIAL[:] = [material]
        tallies = {kind: try_some(kind, [int(number)], asked.seed)}
    else:
        tallies = fuzz(asked.count, asked.seed, material, asked.processes, say, asked.minutes * 60)
        _RANGE.append(Range(Path(tempfile.mkdtemp(prefix="fuzz-"))))
    for line in figures(tallies):
        say(line)
    say(f"{time.monotonic() - begun:.0f} s with {asked.processes} processes")
    faults = [fault for tally in tallies.values() for fault in tally.faults]
    for line in keep(faults, asked.seed, material, asked.keep, whole=asked.whole):
        say(line)
    sys.exit(bool(faults))


def _corpora() -> Iterator[Path]:
    told = os.environ.get("CHARTGEN_CORPUS")
    yield from [Path(told)] if told else (parent / "shared" / "corpus" for parent in ROOT.parents)


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
