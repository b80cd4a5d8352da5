"""`chartgen metrics` on tests of the network: the columns of nccl-tests, whoever printed them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trainlogs as logs
from click.testing import CliRunner
from trainlogs import NCCL_HEAD, NCCL_TESTS
from userlib import chartgen

from chartgen.cli import main
from chartgen.metrics.read.log import read_streams
from chartgen.metrics.read.readers.nccl import TableReader
from chartgen.metrics.show.bandwidth import format_size

# Launcher nccl-test on two H200, 2026-11-21, with the time stamps of `kubectl logs --timestamps`; spaces are left out.
AT = "2026-11-21T18:46:50.123456789Z"
OURS = f"""\
{AT} # ranks 2, machines 1, backend nccl, nccl 2.28.9, gpu NVIDIA H200, largest 16 GiB
{AT} # all_reduce
{AT} {NCCL_HEAD}
{AT}   4294967296   1073741824   float    sum   -1     N/A     N/A     N/A   N/A   12346   347.88   347.88     0
{AT}   8589934592   2147483648   float    sum   -1     N/A     N/A     N/A   N/A   24785   346.58   346.58     0
{AT} # alltoall
{AT} {NCCL_HEAD}
{AT}  17179869184   2147483648   float   none   -1   25305  678.92  339.46     2     N/A      N/A      N/A   N/A
"""


def test_a_log_of_nccl_tests_is_read() -> None:
    rows = TableReader().read(NCCL_TESTS.encode())
    assert [(row.operation, row.place, row.bytes, row.busbw) for row in rows] == [
        ("", "out", 1 << 30, 313.29),
        ("", "in", 1 << 30, 313.29),
        ("", "out", 2 << 30, 437.79),
        ("", "in", 2 << 30, 437.89),
    ]


@pytest.mark.parametrize(
    "name",
    [
        "# Collective test starting: alltoall_perf",
        "+ mpirun -np 16 /opt/nccl-tests/build/alltoall_perf -b 8",
        "# alltoall",
    ],
)
def test_the_collective_is_known_by_whatever_names_it(name: str) -> None:
    rows = TableReader().read(f"0: {name}\n{NCCL_TESTS.replace('[1,0]<stdout>:', '0: ')}".encode())
    assert {row.operation for row in rows} == {"alltoall"}
    assert len(rows) == 4


def test_the_best_of_each_collective_is_told(tmp_path: Path) -> None:
    log = tmp_path / "net.log"
    log.write_text(OURS)
    ran = chartgen("metrics", log)
    assert (ran.exit_code, ran.stdout.splitlines()) == (
        0,
        [
            "all_reduce     347.88 GB/s busbw at 4 GiB in place, 12,346 us",
            "alltoall       339.46 GB/s busbw at 16 GiB out of place, 25,305 us, 2 elements wrong",
        ],
    )


@pytest.mark.parametrize("content", [OURS, NCCL_TESTS, f"{'talk of a program' * 50_000}\n{OURS}"])
def test_the_standard_input_and_a_folder_are_read_as_a_file_is(content: str, tmp_path: Path) -> None:
    (tmp_path / "0.log").write_text("another rank, which prints no table\n")
    (tmp_path / "1.log").write_text(content)
    read = chartgen("metrics", tmp_path / "1.log").stdout
    assert "GB/s busbw at" in read
    assert chartgen("metrics", tmp_path).stdout == read
    assert CliRunner().invoke(main, ["metrics", "-"], input=content).stdout == read


def test_the_name_may_stand_a_long_way_before_the_table() -> None:
    talk = f"{'NCCL INFO Channel 00/08 : 0 1 2 3':<99}\n".encode()
    log = read_streams([("net", [b"# Collective test starting: all_gather_perf\n", talk * 4000, NCCL_TESTS.encode()])])
    assert {row.operation for row in log.bandwidths} == {"all_gather"}


def test_a_test_before_training_does_not_hide_the_training(tmp_path: Path) -> None:
    log = tmp_path / "both.log"
    log.write_text(NCCL_TESTS + logs.megatron(logs.steps([7.0] * 30)))
    ran = chartgen("metrics", log)
    assert "30 steps, 1 to 30" in ran.stdout
    assert "network     collective     437.89 GB/s busbw at 2 GiB in place, 9,195 us" in ran.stdout


@pytest.mark.parametrize(
    ("option", "named"),
    [
        (["--report", "x.html"], "--report"),
        (["--baseline", "published:llama2-70b"], "--baseline"),
        (["--run", "2"], "--run"),
        (["--prometheus"], "--prometheus"),
        (["--output", "csv"], "--output csv"),
    ],
)
def test_what_a_test_of_the_network_does_not_have(option: list[str], named: str, tmp_path: Path) -> None:
    log = tmp_path / "net.log"
    log.write_text(NCCL_TESTS)
    ran = chartgen("metrics", log, *option)
    said = f"error: a test of the network has no {named}; --output json has all rows, --plot draws them\n"
    assert (ran.exit_code, ran.stdout, ran.stderr) == (2, "", said)


def test_a_test_of_the_network_is_no_baseline(tmp_path: Path) -> None:
    (tmp_path / "net.log").write_text(NCCL_TESTS)
    (tmp_path / "run.log").write_text(logs.megatron(logs.steps([7.0] * 30)))
    ran = chartgen("metrics", tmp_path / "run.log", "--baseline", tmp_path / "net.log")
    said = f"error: {tmp_path / 'net.log'}: has no training steps, but a test of the network\n"
    assert (ran.exit_code, ran.stderr) == (1, said)


def test_all_rows_are_there_as_json(tmp_path: Path) -> None:
    log = tmp_path / "net.log"
    log.write_text(NCCL_TESTS)
    found = json.loads(chartgen("metrics", log, "--output", "json").stdout)
    (best,) = found["best"]
    assert best == {
        "operation": "",
        "place": "in",
        "bytes": 2147483648,
        "microseconds": 9195.2,
        "algbw": 233.54,
        "busbw": 437.89,
        "wrong": 0,
        "test": 1,
    }
    assert len(found["rows"]) == 4


def test_the_bandwidth_is_drawn_over_the_sizes(tmp_path: Path) -> None:
    log, picture = tmp_path / "net.log", tmp_path / "net.svg"
    log.write_text(OURS)
    assert chartgen("metrics", log, "--plot", picture).exit_code == 0
    assert "<svg" in picture.read_text()
    refused = chartgen("metrics", log, "--plot", tmp_path / "net.txt")
    assert refused.exit_code == 2
    assert "cannot draw net.txt; name it .svg" in refused.stderr


@pytest.mark.parametrize(
    ("number", "text"), [(8, "8 B"), (1 << 20, "1 MiB"), (3 << 29, "1.5 GiB"), (1 << 44, "16384 GiB")]
)
def test_sizes_are_written_in_the_largest_unit(number: int, text: str) -> None:
    assert format_size(number) == text
