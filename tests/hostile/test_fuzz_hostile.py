"""The fuzzer of hostile input: a few of its inputs, and that it finds each sort of fault that it looks for."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import click
import fuzz_hostile
import hostileinputs
import hostilerange
import pytest
from caged import GIGA, ROOT, TRACER, Budget, Cage, caged, traced
from fuzz_hostile import KINDS, shrink, signature, try_some
from hostileinputs import Input, Material, collect, invent
from hostilerange import Range
from mutators import BYTES, LOG, TEXT, Files, twisted, within

from chartgen.errors import ChartgenError
from chartgen.linter.confined import Outcome, confined
from chartgen.linter.examination import LintStep
from chartgen.linter.limits import Limits

FEW = 80


@pytest.mark.usefixtures("built_helm")
def test_a_few_hostile_inputs_do_no_harm(tmp_path: Path) -> None:
    """Of charts and logs of this repository alone, so that they are the same everywhere."""
    command = [sys.executable, fuzz_hostile.__file__, "--count", str(FEW), "--processes", "1"]
    alone = {**os.environ, "CHARTGEN_CORPUS": str(tmp_path / "none"), "CHARTGEN_CHARTS": ""}
    alone["PYTHONPATH"] = str(ROOT / "tests" / "support")
    ran = subprocess.run([*command, "--keep", str(tmp_path)], capture_output=True, text=True, check=False, env=alone)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    tried = re.findall(r"^(\w+) +(\d+) inputs through", ran.stdout, re.MULTILINE)
    assert {kind: int(count) for kind, count in tried} == {
        kind: round(FEW * share) for kind, (_, share) in KINDS.items()
    }
    assert "helm template" in ran.stdout


def endless() -> None:
    while True:
        pass


def waits() -> None:
    os.read(os.pipe()[0], 1)


def reaches_out() -> None:
    with socket.socket() as other:
        other.connect_ex(("127.0.0.1", 9))


def crashes_in_lint() -> None:
    def broken() -> Outcome:
        raise ZeroDivisionError("of a test")

    click.echo(str(confined("x", broken, Limits(seconds=5)).findings[0]))


def lists_in_lint() -> None:
    def lists() -> Outcome:
        return Outcome([], [LintStep(each.name, 0) for each in Path("/etc").iterdir()])

    confined("x", lists, Limits(seconds=5))


PLANTED: dict[str, tuple[Callable[[], object], str]] = {
    "a loop": (endless, "endless"),
    "a wait": (waits, "endless"),
    "an exception": (lambda: 1 / 0, "traceback"),
    "a crash that lint confines": (crashes_in_lint, "traceback"),
    "an allocation": (lambda: bytearray(4 * GIGA), "traceback"),
    "memory that is used": (lambda: b"x" * (GIGA // 2), "memory"),
    "a file": (lambda: Path("/etc/hostname").read_bytes(), "outside"),
    "a file behind a link": (lambda: Path("link").read_bytes(), "outside"),
    "a folder, in lint's child": (lists_in_lint, "outside"),
    "a file that is written": (lambda: Path("run.log").write_text("x"), "outside"),
    "a file that is removed": (lambda: Path("run.log").unlink(), "outside"),
    "a connection": (reaches_out, "outside"),
    "a program": (lambda: subprocess.run(["/bin/true"], check=False), "outside"),
    "a script that runs": (lambda: subprocess.run(["bash", "-c", "true"], check=False), "outside"),
    "an escape": (lambda: click.echo("\x1b[2J", color=True), "steers"),
    "a command of a runner": (lambda: click.echo("::set-env name=x::y"), "steers"),
    "an exit code": (lambda: sys.exit(7), "exit code"),
    "a signal": (lambda: os.kill(os.getpid(), 9), "killed"),
}


@pytest.fixture
def cage(tmp_path: Path) -> Cage:
    folders = [tmp_path / name for name in ("in", "out", "tmp")]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "run.log").write_text("a log")
    (folders[0] / "link").symlink_to("/etc/hostname")
    return Cage(folders[0], folders[1], folders[2], ("bash",))


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str, cage: Cage) -> None:
    work, kind = PLANTED[name]
    # a child begins with the memory of its parent, a worker that has run many tests
    own = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    found = caged(work, cage, Budget(wall=20 if name != "a wait" else 1, processor=2, resident=own + GIGA // 3))
    assert found.faults
    assert {each.partition(":")[0] for each in found.faults} == {kind}


def test_what_is_allowed_is_no_fault(cage: Cage) -> None:
    def work() -> None:
        Path("run.log").read_text()
        (cage.writes / "report.html").write_text("x")
        subprocess.run(["bash", "-n"], input=b"true", check=True)
        click.echo("::error file=x::a finding of lint")
        sys.exit(3)

    found = caged(work, cage, Budget())
    assert (found.faults, found.code, found.ran["bash -n"]) == ([], 3, 1)


@pytest.fixture(scope="module")
def material() -> Iterator[Material]:
    """This repository's alone; nothing is rendered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hostileinputs, "render", lambda *_: "kind: Job\n")
        yield collect(None, None)


TRIGGERS: dict[str, tuple[bytes, Callable[[], object], str]] = {
    "a traceback": (b"\x00", lambda: TRIGGERS["planted"], "traceback"),
    "a hang": (b"x", endless, "endless"),
    "an allocation": (b"9" * 18, lambda: bytes(4 * GIGA), "traceback"),
    "a file outside": (b"\x1b", lambda: Path("/etc/hostname").read_text(), "outside"),
}


@pytest.mark.usefixtures("built_helm")
@pytest.mark.parametrize("name", TRIGGERS)
def test_a_fault_planted_in_a_reader_is_found(
    name: str, material: Material, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The reader fails at logs that hold some bytes: of 80 logs there is one."""
    trigger, fault, kind = TRIGGERS[name]

    def planted(place: str) -> Iterator[bytes]:
        data = Path(place).read_bytes()
        if trigger in data:
            fault()
        yield data + b"\n"

    monkeypatch.setattr("chartgen.metrics.read.log.read_blocks", planted)
    monkeypatch.setattr(fuzz_hostile, "_MATERIAL", [material])
    monkeypatch.setattr(fuzz_hostile, "_RANGE", [Range(tmp_path)])
    monkeypatch.setitem(hostilerange.BUDGETS, "log", replace(Budget(), processor=1))
    found = (each for number in range(80) for each, _, _ in try_some("log", [number], seed=1).faults)
    assert any(each.partition(":")[0] == kind for each in found)


@pytest.mark.usefixtures("built_helm")
def test_a_fault_planted_in_a_reader_of_a_cluster_is_found(
    material: Material, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Objects of another form end the command: of 40 inputs there is one."""
    monkeypatch.setattr("chartgen.kube.cluster.Cluster.judged", lambda _, items, judge: ((i, judge(i)) for i in items))
    monkeypatch.setattr("chartgen.kube.answers.parse_json", json.loads)
    monkeypatch.setattr("chartgen.kube.answers.check_form", lambda _: None)
    monkeypatch.setattr("chartgen.kube.cluster.check_form", lambda _: None)
    monkeypatch.setattr("chartgen.kube.http.parse_json", json.loads)
    monkeypatch.setattr(fuzz_hostile, "_MATERIAL", [material])
    monkeypatch.setattr(fuzz_hostile, "_RANGE", [Range(tmp_path)])
    found = (each for number in range(40) for each, _, _ in try_some("cluster", [number], seed=2).faults)
    assert any(each.startswith("traceback") for each in found)


@pytest.mark.usefixtures("built_helm")
def test_a_doctor_that_a_tenant_ends_is_found(
    material: Material, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It ends with one line, as for an error of its user."""

    def ends(*_: object) -> Iterator[object]:
        raise ChartgenError("of a test")

    monkeypatch.setattr("chartgen.releases.preflight.nodes._taken", ends)
    monkeypatch.setattr("chartgen.kube.cluster.check_form", lambda _: None)
    monkeypatch.setattr("chartgen.kube.cluster.Cluster.judged", lambda _, items, judge: ((i, judge(i)) for i in items))
    made = next(
        each
        for each in (invent("cluster", number, 1, material) for number in range(500))
        if each.ways == ["tenant"] and each.argv[:2] == ["doctor", "gke-a3mega"]
    )
    assert any(each.startswith("silent") for each in Range(tmp_path).judge(made, "cluster").faults)


def test_inputs_are_the_same_for_a_seed(material: Material) -> None:
    for kind in KINDS:
        first = [invent(kind, number, 1, material) for number in range(20)]
        assert first == [invent(kind, number, 1, material) for number in range(20)]
        assert first != [invent(kind, number, 2, material) for number in range(20)]


def test_what_doubles_is_not_written_out() -> None:
    """A bomb of aliases, which another change would read, took 19 GB of the fuzzer's own process."""
    rows = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 31))
    assert hostileinputs._plain(b"a: [x]\n") == {"a": ["x"]}
    assert hostileinputs._plain(f"a0: &a0 [x]\n{rows}".encode()) is None


def test_what_is_repeated_stays_small() -> None:
    """Seeds whose changes repeat what was repeated."""
    many = [twisted([[[0]]], Random(seed), [0]) for seed in (819, 1913, 2465)]  # noqa: S311 the same ones each time
    assert all(within(each) for each in many)
    assert max(len(json.dumps(each)) for each in many) > 1000


def test_every_way_of_mutating_is_used(material: Material) -> None:
    made = [way for kind in KINDS for number in range(150) for way in invent(kind, number, 1, material).ways]
    used = {way.split()[0] for way in made}
    assert {way.__name__ for way in (*BYTES, *LOG, *TEXT)} <= used
    assert {"tree", "schema", "objects", "moved", "name", "preset", "link", "pipe", "archive", "many"} <= used


def test_an_input_is_shrunk(material: Material) -> None:
    del material
    text = b"".join(b"line %d\n" % number for number in range(1000))
    made = Input(Files({"a": text, "b": b"x"}, {"c": "d"}), ["metrics"], ["x"])
    smaller = shrink(made, lambda each: b"line 77\n" in each.made.files.get("a", b""))
    assert list(smaller.made.files) == ["a"]
    assert smaller.made.links == {}
    assert len(smaller.made.files["a"]) < len(text) / 100


def test_faults_of_one_place_are_one_sort() -> None:
    frame = 'traceback: Traceback\n  File "x.py", line {}, in read\nValueError: {}'
    assert signature(frame.format(7, "a")) == signature(frame.format(7, "b"))
    assert signature(frame.format(7, "a")) != signature(frame.format(7, "a").replace("ValueError", "KeyError"))


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not here")
def test_what_helm_opens_is_seen(cage: Cage) -> None:
    """`cat` stands where Helm would: it opens what it is told to."""
    tracer = cage.scratch / "helm"
    tracer.write_text(TRACER.format(strace=shutil.which("strace"), folder=cage.scratch, helm="/bin/cat"))
    tracer.chmod(0o755)
    subprocess.run([tracer, "/etc/passwd", cage.reads / "run.log"], capture_output=True, check=True)
    found = traced(cage.scratch, cage, "/bin/cat")
    assert "outside: helm opens /etc/passwd" in found
    assert not any("run.log" in each for each in found)
    assert traced(cage.scratch, cage, "/bin/cat") == []


def test_errors_that_chartgen_foresees_are_no_fault(cage: Cage) -> None:
    from chartgen.cli import main

    def work() -> Any:
        raise ChartgenError("foreseen")

    assert "traceback" in caged(work, cage, Budget()).faults[0]  # below the command line it is a fault
    found = caged(lambda: main(["metrics", "run.log"], prog_name="chartgen"), cage, Budget())
    assert (found.faults, found.code) == ([], 1)
