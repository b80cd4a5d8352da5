"""`chartgen why` reads logs and dumps of programs and other users: it ends, in bounded memory, with a verdict."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chartgen.metrics.read.lines import find_logs
from chartgen.releases.why import run_log
from chartgen.releases.why.explanation import explain_files
from chartgen.releases.why.flight_recorder import read_dump
from chartgen.releases.why.run_log import read_file, read_run_log

OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"
REPORT = "Root Cause (first observed failure):\n"


def text(word: bytes) -> bytes:
    """Return a text of a pickle."""
    return b"X" + len(word).to_bytes(4, "little") + word


def pickled(entry: bytes) -> bytes:
    """Return a dump with one entry, whose keys and values are those of a pickle."""
    return b"\x80\x02}(" + text(b"entries") + b"](}(" + entry + b"ueu."


@pytest.mark.threat(14)
@pytest.mark.parametrize(
    "report",
    [
        f"{REPORT}  rank : abc\n  exitcode : xyz\n",
        f"{REPORT}  exitcode : 1\n",
        f"{REPORT}  rank : {'9' * 900}\n  exitcode : 1\n",
    ],
)
def test_a_report_of_torchrun_without_numbers_hides_no_cause(report: str, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(OUT_OF_MEMORY + report)
    assert explain_files([tmp_path]).cause == "gpu-memory"


@pytest.mark.threat(14)
def test_files_that_cannot_be_read_to_their_end_hide_no_others(tmp_path: Path) -> None:
    packed = gzip.compress(b"".join(b"%d\n" % number for number in range(9999)))
    (tmp_path / "a.log.gz").write_bytes(packed[:2000])
    (tmp_path / "b.log.gz").write_bytes(packed[:10] + b"\xff" * 99)
    (tmp_path / "z.log").write_text(OUT_OF_MEMORY)
    found = explain_files([tmp_path])
    assert found.cause == "gpu-memory"
    assert {line.partition(":")[0] for line in found.examined} == {"a.log.gz", "b.log.gz", "z.log"}


@pytest.mark.threat(9)
def test_lines_of_black_boxes_are_read_in_linear_time(tmp_path: Path) -> None:
    line = "blackbox: 2026-11-27T10:00:00Z machine 0 ended with exit code 69 in pod p-0"
    (tmp_path / "a.log").write_text(f"{line}\n" * 5000)
    assert len(read_file(tmp_path / "a.log").clues) == 1000


@pytest.mark.threat(23)
def test_a_link_out_of_a_folder_of_logs_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(OUT_OF_MEMORY)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "run.log").write_text("step 1\n")
    (logs / "latest.log").symlink_to("run.log")
    for name, target in (("a.log", tmp_path / "secret"), ("b.log", Path("/proc/self/mem"))):
        (logs / name).symlink_to(target)
    assert explain_files([logs]).cause == "unknown"
    assert find_logs([str(logs)]) == [str(logs / "latest.log"), str(logs / "run.log")]


@pytest.mark.threat(14)
@pytest.mark.parametrize(
    "content",
    [
        b'{"entries": [{"collective_seq_id": "abc"}]}',
        b'{"entries": [{"collective_seq_id": 1e999}]}',
        json.dumps({"entries": [{"pg_id": "0"}], "pg_config": {"0": {"ranks": "9" * 5000}}}).encode(),
        pickled(text(b"process_group") + b"](" + b"]" * 200_000 + b"a" * 199_999 + b"e"),
        pickled(text(b"profiling_name") + b"}" + text(b"pg_id") + b"]"),
    ],
)
def test_a_dump_with_fields_of_other_types_is_read(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "nccl_trace_rank_0").write_bytes(content)
    (tmp_path / "run.log").write_text(OUT_OF_MEMORY)
    assert explain_files([tmp_path]).cause == "gpu-memory"


@pytest.mark.threat(9)
def test_a_dump_that_expands_to_too_much_is_none(tmp_path: Path) -> None:
    row = b"](" + b"K\x01" * 20_000 + b"eq\x01"
    sizes = text(b"input_sizes") + b"](" + row + b"h\x01" * 20_000 + b"e"
    for content in (pickled(sizes), pickled(text(b"a") + b"](" + b"]" * 9_000_000 + b"e")):
        (file := tmp_path / "nccl_trace_rank_0").write_bytes(content)
        assert read_dump(file) is None


@pytest.mark.threat(9)
def test_a_log_of_carriage_returns_or_packed_zeros_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "_MOST_BYTES", 1 << 22)
    monkeypatch.setattr(run_log, "_MOST_LINES", 1000)
    (file := tmp_path / "a.log.gz").write_bytes(gzip.compress(bytes(1 << 24)))
    taken: list[str] = []
    monkeypatch.setattr(run_log._LogReading, "take", lambda _, line: taken.append(line))
    assert read_file(file).lines == 4
    taken.clear()
    read_run_log("a", ["a\r" * 600] * 9)
    assert len(taken) == 1200
    read_run_log("a", ["\r" * 600_000] * 9)
    assert len(taken) == 1209


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_of_a_long_log_the_end_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    """As `tail -c 1MB` shows it, and the answer says so."""
    monkeypatch.setattr(run_log, "_END", 1_000_000)
    lines = b"line\n" * 300_000 + OUT_OF_MEMORY.encode()
    (file := tmp_path / "a.log").write_bytes(pack(lines))
    found = explain_files([file])
    assert found.cause == "gpu-memory"
    number = lines[-1_000_000:].count(b"\n")
    assert found.evidence[0].place == f"the last 1 MB of a.log:{number}"
    assert found.examined == (f"the last 1 MB of a.log: {number} lines",)


@pytest.mark.threat(9)
def test_a_huge_log_is_read_at_its_end_alone(tmp_path: Path) -> None:
    with (file := tmp_path / "a.log").open("wb") as log:
        log.truncate(1 << 40)
        log.seek(0, 2)
        log.write(b"\n" + OUT_OF_MEMORY.encode())
    assert explain_files([file]).cause == "gpu-memory"


@pytest.mark.threat(9)
def test_a_log_of_a_million_ranks_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "_MOST_RANKS", 100)
    waits = "Watchdog caught WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1)"
    stack = 'Thread 1 (idle): "MainThread"'
    ranks = [*range(200), 9, 9]
    log = read_run_log("a", [f"[rank{rank}]: {line}\n" for line in (waits, stack) for rank in ranks])
    status = read_run_log("b", [f"[PG 0 Rank {rank}] last enqueued work: 5\n" for rank in ranks])
    assert [len(each) for each in (log.timeouts, log.seen, status.enqueued)] == [100, 100, 100]
    assert max(log.stacks) < 100


def test_a_stack_in_a_file_of_windows_is_read() -> None:
    stack = 'Thread 1 (idle): "MainThread"\r\n    all_reduce (torch/distributed/c10d.py:1)\r\n    main (a.py:2)\r\n'
    (log,) = [read_run_log("rank-3.log", stack.splitlines(keepends=True))]
    assert [len(frames) for _, frames in log.stacks.values()] == [2]
