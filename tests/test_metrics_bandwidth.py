"""`chartgen metrics` on tests of the network: the columns of nccl-tests, whoever printed them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from userlib import chartgen

from chartgen.metrics.bandwidth import size_of
from chartgen.metrics.readers.nccl import read_rows

HEAD = "#       size     count   type   redop   root   time   algbw   busbw #wrong   time   algbw   busbw #wrong"
# Two p5.48xlarge machines, each line with what mpirun puts before it, and spaces left out:
# aws-samples/awsome-distributed-training @ 7217859, micro-benchmarks/nccl-tests/README.md.
CLASSIC = f"""\
[1,0]<stdout>:{HEAD}
[1,0]<stdout>:           0           0   float   sum   -1    15.51    0.00    0.00   0    15.52    0.00    0.00   0
[1,0]<stdout>:  1073741824   268435456   float   sum   -1   6426.3  167.09  313.29   0   6426.1  167.09  313.29   0
[1,0]<stdout>:  2147483648   536870912   float   sum   -1   9197.5  233.49  437.79   0   9195.2  233.54  437.89   0
[1,0]<stdout>:# Out of bounds values : 0 OK
[1,0]<stdout>:# Avg bus bandwidth    : 52.9753
"""
# Launcher nccl-test on two H200, 2026-11-21, with the time stamps of `kubectl logs --timestamps`; spaces are left out.
AT = "2026-11-21T18:46:50.123456789Z"
OURS = f"""\
{AT} # ranks 2, machines 1, backend nccl, nccl 2.28.9, gpu NVIDIA H200, largest 16 GiB
{AT} # all_reduce
{AT} {HEAD}
{AT}   4294967296   1073741824   float    sum   -1     N/A     N/A     N/A   N/A   12346   347.88   347.88     0
{AT}   8589934592   2147483648   float    sum   -1     N/A     N/A     N/A   N/A   24785   346.58   346.58     0
{AT} # alltoall
{AT} {HEAD}
{AT}  17179869184   2147483648   float   none   -1   25305  678.92  339.46     2     N/A      N/A      N/A   N/A
"""


def test_a_log_of_nccl_tests_is_read() -> None:
    rows = read_rows(CLASSIC.splitlines())
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
    rows = read_rows([f"0: {name}", *CLASSIC.replace("[1,0]<stdout>", "0").splitlines()])
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


def test_all_rows_are_there_as_json(tmp_path: Path) -> None:
    log = tmp_path / "net.log"
    log.write_text(CLASSIC)
    found = json.loads(chartgen("metrics", log, "--output", "json").stdout)
    (best,) = found["best"]
    assert best == {
        "operation": "",
        "place": "in",
        "bytes": 2147483648,
        "time": 9195.2,
        "algbw": 233.54,
        "busbw": 437.89,
        "wrong": 0,
    }
    assert len(found["rows"]) == 4


def test_the_bandwidth_is_drawn_over_the_sizes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    log, picture = tmp_path / "net.log", tmp_path / "net.svg"
    log.write_text(OURS)
    assert chartgen("metrics", log, "--plot", picture).exit_code == 0
    assert "<svg" in picture.read_text()
    refused = chartgen("metrics", log, "--plot", tmp_path / "net.txt")
    assert refused.exit_code == 2
    assert "net.txt is no picture; name it .png, .svg, .pdf" in refused.stderr


@pytest.mark.parametrize(
    ("number", "text"), [(8, "8 B"), (1 << 20, "1 MiB"), (3 << 29, "1.5 GiB"), (1 << 44, "16384 GiB")]
)
def test_sizes_are_written_in_the_largest_unit(number: int, text: str) -> None:
    assert size_of(number) == text
