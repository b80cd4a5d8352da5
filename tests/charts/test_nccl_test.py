"""The launcher nccl-test: what its program measures and concludes, on local processes that stand for machines.

Where PyTorch is installed (see torches.py) the program runs as it does on GPUs, through the chart's start script and
torchrun, with gloo in place of NCCL.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from pod_runner import run
from rendered import Objects, arguments, rendered
from torches import Cluster, is_old

from chartgen.composer.library import BUILTIN
from chartgen.data.compatibility import lock
from chartgen.helm.yaml import load, require_map

FOLDER = BUILTIN / "launchers" / "nccl-test"
sys.path.insert(0, str(FOLDER))

import collectives  # noqa: E402
import pairwise  # noqa: E402
import program  # noqa: E402
import table  # noqa: E402

HEADER = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time"
# Two p5.48xlarge machines: aws-samples/awsome-distributed-training @ 7217859, micro-benchmarks/nccl-tests/README.md.
GENUINE = "  2147483648   536870912   float   sum   -1   9197.5  233.49  437.79   0   9195.2  233.54  437.89   0"
FLOOR = "threshold: NVIDIA/aicr @ bc05c6b, recipes/overlays/h100-eks-ubuntu-training.yaml"


def read_rows(line: str, operation: str) -> list[table.BandwidthRow]:
    """Return the rows in a line of nccl-tests; empty for any other line."""
    words = line.split()
    if len(words) != 13 or not words[0].isdigit():
        return []
    halves = {"out": words[5:9], "in": words[9:]}
    return [
        table.BandwidthRow(
            operation=operation,
            bytes=int(words[0]),
            count=int(words[1]),
            type=words[2],
            redop=words[3],
            place=place,
            time=float(columns[0]),
            algbw=float(columns[1]),
            busbw=float(columns[2]),
            # nccl-tests writes N/A where it does not check
            wrong=0 if columns[3] == "N/A" else int(float(columns[3])),
        )
        for place, columns in halves.items()
        if columns[0] != "N/A"
    ]


def own(*sets: str, nodes: int) -> Objects:
    """The objects of a run on local processes."""
    keys = (f"launchers.nccl-test.{flag}" for flag in sets)
    return run(
        "launcher=nccl-test",
        f"nodes={nodes}",
        "gpusPerNode=1",
        *keys,
        json=('launchers.nccl-test.args=["--backend", "gloo"]',),
    )


def flags(found: Objects) -> dict[str, list[str]]:
    """The program's options with their values, those of one name one behind the other."""
    options: dict[str, list[str]] = {}
    name = ""
    for word in arguments(found)[1:]:
        name = word if word.startswith("--") else name
        options.setdefault(name, []).extend([] if word.startswith("--") else [word])
    return options


# -- what the chart passes


def test_the_default_is_a_sweep_of_all_collectives() -> None:
    assert flags(run("launcher=nccl-test")) == {
        "--mode": ["sweep"],
        "--operations": ["all_reduce", "all_gather", "reduce_scatter", "alltoall"],
        "--sizes": ["8", "16Gi"],
        "--factor": ["2"],
        "--iterations": ["20"],
        "--warmup": ["5"],
        "--type": ["float"],
        "--slow-below": ["80"],
    }


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        (("nodes=2",), ["all_reduce", "300", "2Gi", FLOOR]),
        (("nodes=1",), None),
        (("nodes=2", "gpusPerNode=4"), None),
        (("nodes=2", "machineType=p5e.48xlarge"), None),
        (("nodes=4", "launchers.nccl-test.mode=pairs"), None),
        (
            ("nodes=1", "launchers.nccl-test.minBusbw.all_reduce=450"),
            ["all_reduce", "450", "0", "launchers.nccl-test.minBusbw"],
        ),
        (
            ("nodes=2", "launchers.nccl-test.minBusbw.all_reduce=0"),
            ["all_reduce", "0", "0", "launchers.nccl-test.minBusbw"],
        ),
    ],
)
def test_floors_are_published_for_whole_machines_and_the_user_has_the_last_word(
    sets: tuple[str, ...], expected: list[str] | None
) -> None:
    found = rendered("launcher=nccl-test", *sets, files=(), name="eks-p5", workload="jobset")
    assert flags(found).get("--floor") == expected


@pytest.mark.parametrize(
    ("machine", "name", "operation", "busbw", "bytes_", "measured"),
    [
        ("a3-megagpu-8g", "gke-a3mega", "all_reduce", "300", "8Gi", False),
        ("a3-megagpu-8g", "gke-a3mega", "all_gather", "169.9", "8Gi", True),
        ("a3-highgpu-8g", "gke-a3high", "all_gather", "63.8", "512Mi", True),
    ],
)
def test_a_threshold_stands_as_it_was_published_and_a_measurement_leaves_a_tenth(
    machine: str, name: str, operation: str, busbw: str, bytes_: str, measured: bool
) -> None:
    found = rendered("launcher=nccl-test", "nodes=2", f"machineType={machine}", files=(), name=name)
    argv = arguments(found)
    floors = {argv[at + 1]: argv[at + 2 : at + 5] for at, each in enumerate(argv) if each == "--floor"}
    assert floors[operation][:2] == [busbw, bytes_]
    assert floors[operation][2].startswith("9/10 of " if measured else "threshold: ")


def test_a_floor_is_a_threshold_or_a_measurement_and_its_source_has_a_version() -> None:
    rows = lock()["floors"]
    assert all(("threshold" in row) != ("measured" in row) for row in rows)
    assert all(re.search(r" @ [0-9a-f]{7}, | of 20\d\d-\d\d-\d\d, ", row["source"]) for row in rows)
    machines = {(row["machine"], row["operation"]) for row in rows}
    assert len(machines) == len(rows)
    assert {("a3-ultragpu-8g", "all_gather"), ("a4-highgpu-8g", "all_gather")} < machines


def test_the_page_lists_the_published_floors() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "nccl-test.md").read_text()
    rows = [
        "| " + " | ".join(str(row[key]) for key in ("machine", "operation", "busbw", "bytes", "basis")) + " |"
        for row in lock()["floors"]
    ]
    assert [line for line in page.splitlines() if line in rows] == rows


def test_the_model_of_a_preset_does_not_count() -> None:
    found = rendered("launcher=nccl-test", "nodes=3")
    assert arguments(found)[0] == "/etc/chartgen/program.py"


# -- rows, pairs and numbers


def test_rows_of_nccl_tests_are_read_and_written_as_they_are() -> None:
    rows = read_rows(GENUINE, "all_reduce")
    assert [(each.place, each.busbw) for each in rows] == [("out", 437.79), ("in", 437.89)]
    assert table.format_rows(rows).split() == GENUINE.split()
    assert [read_rows(line, "all_reduce") for line in (HEADER, "# Avg bus bandwidth    : 52.9753", "")] == [
        [],
        [],
        [],
    ]


def test_a_place_that_cannot_be_measured_is_not_available() -> None:
    single = table.BandwidthRow("alltoall", 1 << 20, 1 << 10, "half", "none", "out", 12345.6, 0.085, 0.0797, 3)
    expected = "1048576 1024 half none -1 12346 0.09 0.08 3 N/A N/A N/A N/A"
    assert table.format_rows([single]).split() == expected.split()
    assert [(each.place, each.time, each.wrong) for each in read_rows(table.format_rows([single]), "alltoall")] == [
        ("out", 12346, 3)
    ]


@pytest.mark.parametrize(("text", "number"), [("8", 8), ("64Ki", 65536), ("16Gi", 17179869184), ("100", 100)])
def test_sizes_are_read(text: str, number: int) -> None:
    assert table.bytes_of(text) == number


@pytest.mark.parametrize("machines", range(2, 34))
def test_in_rounds_each_pair_meets_once_and_no_machine_twice_in_a_round(machines: int) -> None:
    rounds = list(pairwise.rounds(machines))
    met = sorted(pair for meeting in rounds for pair in meeting)
    assert met == [(one, other) for one in range(machines) for other in range(one + 1, machines)]
    assert len(rounds) == machines - 1 + machines % 2
    assert all(len({each for pair in meeting for each in pair}) == 2 * len(meeting) for meeting in rounds)


@pytest.mark.parametrize(
    ("speeds", "slow"),
    [
        ([400, 400, 100], ["node-2"]),
        ([400] * 7 + [300], ["node-7"]),
        ([400] * 7 + [330], []),
        ([100, 400, 400, 100, 400, 400], ["node-0", "node-3"]),
        ([400, 410, 390, 405], []),
    ],
)
def test_a_machine_is_slow_when_its_pairs_are(speeds: list[float], slow: list[str]) -> None:
    pairs = {pair: min(speeds[each] for each in pair) for meeting in pairwise.rounds(len(speeds)) for pair in meeting}
    found = pairwise.levels(pairs, len(speeds))
    _, told = pairwise.report([f"node-{each}" for each in range(len(speeds))], found, 80)
    assert [line.split()[2] for line in told if " is slow: " in line] == slow
    assert bool(told) == bool(slow)


def test_one_slow_pair_of_two_good_machines_names_nobody() -> None:
    pairs = {pair: 400.0 for meeting in pairwise.rounds(8) for pair in meeting} | {(2, 5): 20.0}
    _, told = pairwise.report([str(each) for each in range(8)], pairwise.levels(pairs, 8), 80)
    assert told == []


def test_the_report_names_the_machine_and_the_values_that_avoid_it() -> None:
    lines, told = pairwise.report(["gke-a", "gke-bad", "gke-c"], [400.0, 100.0, 396.0], 80)
    assert lines == [
        "# machine    busbw   share",
        "  gke-a     400.00  101.0%",
        "  gke-bad   100.00   25.3%",
        "  gke-c     396.00  100.0%",
    ]
    assert told == [
        "chartgen: nccl-test: gke-bad is slow: 100.00 GB/s with its partners, 25% of the 396.00 GB/s of most machines",
        "chartgen: nccl-test: values that keep a run away from what is slow:",
        'avoidNodes: ["gke-bad"]',
    ]


@pytest.mark.parametrize("ranks", [2, 3, 16, 255, 257, 1000])
@pytest.mark.parametrize("kind", sorted(collectives.EXACT))
def test_sums_are_exact_in_every_number_format(ranks: int, kind: str) -> None:
    limit = collectives.EXACT[kind]
    sent = [collectives.numbers(rank, ranks, limit) for rank in range(ranks)]
    assert max(map(sum, zip(*sent, strict=True))) <= limit
    assert all(any(each) for each in sent)
    assert sent[0] != sent[1]


# -- verdicts


def verdicts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, rows: list[table.BandwidthRow], *floors: program.Floor
) -> list[str]:
    """What the program says of rows."""
    monkeypatch.setenv("RUN_DIRECTORY", str(folder))
    record = program.MeasurementFile()
    record.add(rows)
    return program.verdict(record, list(floors))


@pytest.mark.threat(19)
def test_the_record_replaces_what_another_tenant_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, victim = tmp_path / "nccl-test.jsonl", tmp_path / "victim"
    victim.write_text("theirs")
    record.symlink_to(victim)
    verdicts(tmp_path, monkeypatch, [row("all_reduce", 1, 1.0)])
    assert victim.read_text() == "theirs"
    assert record.read_text().count("\n") == 1


def row(operation: str, size: int, busbw: float, *, wrong: int = 0) -> table.BandwidthRow:
    """A row of which only these count."""
    return table.BandwidthRow(operation, size, size // 4, "float", "sum", "in", 1.0, busbw, busbw, wrong)


def test_a_floor_is_judged_by_the_best_of_the_sizes_that_it_is_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row("all_reduce", 1 << 30, 290), row("all_reduce", 2 << 30, 241.25), row("all_reduce", 4 << 30, 240)]
    floor = program.Floor("all_reduce", 300, 2 << 30, FLOOR)
    below = f"chartgen: nccl-test: all_reduce reaches 241.25 GB/s at 2 GiB, 19.6% below the floor of 300 GB/s ({FLOOR})"
    assert verdicts(tmp_path, monkeypatch, rows, floor) == [below]
    assert verdicts(tmp_path, monkeypatch, rows, floor._replace(busbw=241)) == []
    assert capsys.readouterr().out == ""
    assert verdicts(tmp_path, monkeypatch, rows[:1], floor) == []
    unjudged = "# all_reduce: the floor of 300 GB/s is for messages of 2 GiB and more, which were not measured\n"
    assert capsys.readouterr().out == unjudged
    assert verdicts(tmp_path, monkeypatch, rows, floor._replace(operation="alltoall")) == []


def test_wrong_results_are_told_with_the_smallest_message_that_shows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row("alltoall", 8, 1), row("alltoall", 1 << 20, 1, wrong=7), row("alltoall", 2 << 20, 1, wrong=1)]
    told = "chartgen: nccl-test: alltoall gives wrong results: 7 elements of a message of 1 MiB"
    assert verdicts(tmp_path, monkeypatch, rows) == [told]


def test_the_verdict_is_what_kubernetes_keeps_of_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "termination-log"
    kept.touch()
    monkeypatch.setattr(program, "LAST_WORDS", kept)
    with pytest.raises(SystemExit) as ended:
        program.conclude(["chartgen: nccl-test: one", "chartgen: nccl-test: two"])
    assert ended.value.code == 1
    assert kept.read_text() + "\n" == capsys.readouterr().out == "chartgen: nccl-test: one\nchartgen: nccl-test: two\n"
    with pytest.raises(SystemExit) as ended:
        program.conclude([])
    assert ended.value.code == 0


# -- the real program: each machine is a start script with torchrun


def record(cluster: Cluster) -> list[dict[str, Any]]:
    """What rank 0 has left in the run's directory so far."""
    found = cluster.machines[0].folder.rglob("nccl-test.jsonl")
    return [json.loads(line) for path in found for line in path.read_text().splitlines()]


@contextmanager
def slowed(cluster: Cluster, machine: int) -> Iterator[None]:
    """Stop a machine's program again and again from outside: it does everything right, and late."""
    done = threading.Event()

    def pulses() -> None:
        # not while the programs start, which takes long enough; rank 0 opens its record when they have met
        while not any(cluster.machines[0].folder.rglob("nccl-test.jsonl")) and not done.wait(0.005):
            pass
        (file,) = cluster.machines[machine].folder.rglob("pid")
        pid = int(file.read_text())
        ran = 0.005
        while cluster.running[machine].poll() is None and not done.is_set():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                # 39 parts in 40 of the time, however late this thread itself is: on a busy machine a program that
                # slept runs first, so that the others reach a quarter of what they would, and this one does not
                done.wait(39 * ran)
                began = time.monotonic()
                os.kill(pid, signal.SIGCONT)
                done.wait(0.005)
                ran = time.monotonic() - began

    thread = threading.Thread(target=pulses)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_sweep_of_two_machines_measures_and_checks_everything(tmp_path: Path) -> None:
    sets = ("maxBytes=64Ki", "factor=16", "iterations=2", "warmup=1", "dataType=half")
    with Cluster(tmp_path, own(*sets, nodes=2), ("node-a", "node-b")) as cluster:
        cluster.start()
        codes, logs = cluster.finish()
    assert codes == [0, 0], logs
    head, *rows = record(cluster)
    assert (head["ranks"], head["machines"], head["backend"], head["largest"]) == (2, 2, "gloo", "64 KiB")
    sizes = [8, 128, 2048, 32768]
    measured = [(each["operation"], each["place"], each["bytes"], each["count"]) for each in rows]
    halves = [(size, size // 4) for size in sizes]
    assert measured == [
        *(("all_reduce", "in", size, size // 2) for size in sizes),
        *(("all_gather", place, *half) for half in halves for place in ("out", "in")),
        *(("reduce_scatter", place, *half) for half in halves for place in ("out", "in")),
        *(("alltoall", "out", *half) for half in halves),
    ]
    assert {each["wrong"] for each in rows} == {0}
    for each in rows:
        assert each["algbw"] == pytest.approx(each["bytes"] / each["time"] / 1e3)
        assert each["busbw"] == pytest.approx(each["algbw"] * (1 if each["operation"] == "all_reduce" else 0.5))
    printed = [read_rows(line, "") for line in logs[0].splitlines()]
    assert sum(map(len, printed)) == len(rows)
    assert "NCCL" not in logs[1]


def test_a_calibration_writes_values_that_the_chart_takes(tmp_path: Path) -> None:
    with Cluster(tmp_path, own("mode=calibrate", "maxBytes=64Ki", nodes=1), ("node-a",)) as cluster:
        cluster.start()
        codes, logs = cluster.finish()
    assert codes == [0], logs
    (figures,) = record(cluster)[1:]
    assert {"bf16", "memory", "launches"} == figures.keys() - {"machine"}
    _, _, printed = logs[0].partition("\nestimate:\n")
    machine, _, numbers = printed.splitlines()[0].strip().partition(": ")
    assert machine == figures["machine"]
    values = {**require_map(load(numbers, "values"), "values"), "bf16": 600, "memory": 3000}
    taken = run(json=(f"estimate={json.dumps({machine: values})}",))
    assert taken == run()


def test_below_the_floor_the_run_fails_and_says_by_how_much(tmp_path: Path) -> None:
    sets = ("maxBytes=64Ki", "minBytes=64Ki", "iterations=2", "minBusbw.all_reduce=5000", "operations={all_reduce}")
    with Cluster(tmp_path, own(*sets, nodes=2), ("node-a", "node-b")) as cluster:
        cluster.start()
        codes, logs = cluster.finish()
    assert codes[0] == 1
    (line,) = (line for line in logs[0].splitlines() if line.startswith("chartgen: nccl-test: "))
    (only,) = record(cluster)[1:]
    below = f"{1 - only['busbw'] / 5000:.1%} below the floor of 5000 GB/s (launchers.nccl-test.minBusbw)"
    assert line == f"chartgen: nccl-test: all_reduce reaches {only['busbw']:.2f} GB/s at 64 KiB, {below}"


def test_pairs_find_the_slow_machine_and_say_how_to_avoid_it(tmp_path: Path) -> None:
    # the first round must last longer than a busy machine needs to begin the pulses: the best partner counts
    sets = ("mode=pairs", "operations={all_reduce}", "maxBytes=1Mi", "iterations=100", "slowBelow=25")
    names = ("node-a", "node-b", "node-bad", "node-d")
    with Cluster(tmp_path, own(*sets, nodes=4), names, light=True) as cluster:
        cluster.start()
        with slowed(cluster, 2):
            codes, logs = cluster.finish()
    assert codes[0] == 1, logs
    told = logs[0].splitlines()
    (line,) = (line for line in told if " is slow: " in line)
    assert line.startswith("chartgen: nccl-test: node-bad is slow: ")
    assert 'avoidNodes: ["node-bad"]' in told
    pairs = [tuple(each["pair"]) for each in record(cluster)[1:]]
    assert sorted(pairs) == [(one, other) for at, one in enumerate(names) for other in names[at + 1 :]]


def test_what_gloo_cannot_measure_is_said_and_the_rest_is_measured(tmp_path: Path) -> None:
    sets = ("maxBytes=64Ki", "minBytes=64Ki", "iterations=2")
    with Cluster(tmp_path, own(*sets, nodes=2), ("node-a", "node-b"), newer=False) as cluster:
        if not is_old():
            pytest.skip("gloo of this PyTorch has all collectives")
        cluster.start()
        codes, logs = cluster.finish()
    assert codes[0] == 1, logs
    assert {each["operation"] for each in record(cluster)[1:]} == {"all_reduce", "alltoall"}
    told = [line for line in logs[0].splitlines() if line.startswith("chartgen: ")]
    missing = {
        "all_gather": "no support for _allgather_base in Gloo process group",
        "reduce_scatter": "ProcessGroup gloo does not support _reduce_scatter_base",
    }
    version = record(cluster)[0]["torch"]
    assert told == [
        f"chartgen: nccl-test: {operation} of float with gloo of PyTorch {version} cannot be measured: {why}"
        for operation, why in missing.items()
    ]


def test_pairs_say_that_they_need_a_newer_pytorch(tmp_path: Path) -> None:
    found = own("mode=pairs", "operations={all_reduce}", "maxBytes=1Ki", nodes=3)
    with Cluster(tmp_path, found, ("node-a", "node-b", "node-c"), light=True, newer=False) as cluster:
        if not is_old():
            pytest.skip("this PyTorch makes groups that only their members make")
        cluster.start()
        codes, logs = cluster.finish()
    assert codes == [1, 1, 1]
    for log in logs:
        line = r"chartgen: nccl-test: mode pairs needs PyTorch 2\.1 or newer, the image has \S+"
        assert re.fullmatch(line, log.splitlines()[-1])
