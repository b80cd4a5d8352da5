"""Dumps of PyTorch's Flight Recorder: the rank that did not join, and files that are anything else."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from torches import spares_python

from chartgen.releases.why.explanation import explain_files
from chartgen.releases.why.flight_recorder import read_dump

DUMPS = Path(__file__).parents[1] / "data/flight-recorder"
# The calls of each rank: group:number operation state.
JOINED = "0:1 all_reduce completed, 0:2 all_reduce started"
BEHIND = "0:1 all_reduce completed"
GROUPS = {"0": [0, 1, 2], "1": [1, 2]}
SECOND = "all_reduce 2 of group 0 (world)"
STUCK = {
    "a rank that did not join": ([JOINED, JOINED, BEHIND], ("not-joined", 2, SECOND)),
    "a rank without a dump": ([JOINED, JOINED], ("not-joined", 2, SECOND)),
    "another operation": ([JOINED, JOINED.replace("2 all_reduce", "2 broadcast"), JOINED], ("diverged", 1, SECOND)),
    "all ranks joined": ([JOINED] * 3, ("collective-timeout", None, SECOND)),
    "a ring that lost its old entries": (
        [JOINED, "0:2 all_reduce started", BEHIND],
        ("not-joined", 2, SECOND),
    ),
    "a rank that another one waits for": (
        ["0:1 all_reduce started", "1:1 broadcast started", BEHIND.replace("completed", "started")],
        ("deadlock", 1, "all_reduce 1 of group 0 (world)"),
    ),
    "nothing that waits": ([BEHIND] * 3, ("unknown", None, "")),
}


def dump(calls: str) -> dict[str, Any]:
    """Return a dump in the form of torch 2.8 (docs.pytorch.org, Flight Recorder Debugging)."""
    names = {"0": "world", "1": "pair"}
    return {
        "version": "2.10",
        "pg_status": {each: {} for each in GROUPS},
        "pg_config": {each: {"name": each, "desc": names[each], "ranks": str(GROUPS[each])} for each in GROUPS},
        "entries": [
            {
                "frames": [{"name": "step", "filename": "train.py", "line": 7}],
                "process_group": (group, names[group]),
                "pg_id": int(group),
                "record_id": 0,
                "op_id": int(number),
                "p2p_seq_id": 0,
                "timeout_ms": 600_000,
                "time_created_ns": at,
                "time_discovered_started_ns": at,
                "time_discovered_completed_ns": at if state == "completed" else None,
                "collective_seq_id": int(number),
                "profiling_name": f"nccl:{operation}",
                "input_sizes": ((4,),),
                "output_sizes": ((4,),),
                "input_dtypes": ("Float",),
                "output_dtypes": ("Float",),
                "state": state,
                "is_p2p": False,
            }
            for at, (group, number, operation, state) in enumerate(re.findall(r"(\d):(\d) (\w+) (\w+)", calls))
        ],
    }


@pytest.mark.parametrize("packed", [lambda each: pickle.dumps(each, 2), lambda each: json.dumps(each).encode()])
@pytest.mark.parametrize("case", list(STUCK))
def test_the_rank_that_differs_is_named(case: str, packed: Any, tmp_path: Path) -> None:
    ranks, expected = STUCK[case]
    for number, calls in enumerate(ranks):
        (tmp_path / f"nccl_trace_rank_{number}").write_bytes(packed(dump(calls)))
    found = explain_files([tmp_path])
    assert (found.cause, found.rank, found.collective) == expected


# What torchfrtrace of torch 2.11 says of each; the last one is a circle, of which it names the other end.
LATE = "missing ranks: {2}"
THEIRS = [LATE, "missed FR dumps", "Culprit rank 1;", "", LATE, LATE, ""]


@pytest.mark.full
@pytest.mark.parametrize(("case", "theirs"), [*zip(STUCK, THEIRS, strict=True)])
def test_torchfrtrace_names_the_same_rank_or_none(case: str, theirs: str, tmp_path: Path) -> None:
    """With a folder of `make spares` whose torch has it, 2.9 or newer."""
    argv = [str(spares_python()), "-m", "torch.distributed.flight_recorder.fr_trace", "--allow-incomplete-ranks"]
    for number, calls in enumerate(STUCK[case][0]):
        (tmp_path / f"rank_{number}").write_bytes(pickle.dumps(dump(calls)))
    done = subprocess.run([*argv, "-p", "rank_", str(tmp_path)], capture_output=True, text=True, check=False)
    if "No module named" in done.stderr:
        pytest.skip("this torch has no torch.distributed.flight_recorder")
    assert done.returncode == 0, done.stderr
    said = [text for text in {*THEIRS} - {""} if text in done.stdout + done.stderr]
    assert said == [theirs] * bool(theirs)


@pytest.mark.parametrize(("cause", "rank"), [("not-joined", 2), ("diverged", 1)])
def test_dumps_that_torch_wrote(cause: str, rank: int) -> None:
    """Of torch 2.11 with gloo, three ranks (2026-11-24); torchfrtrace itself ends with a KeyError on them."""
    found = explain_files([DUMPS / cause])
    assert (found.cause, found.rank, found.collective) == (cause, rank, "all_reduce 4 of group 0")


SIXTH = "all_reduce 6 of group 0 (default_pg)"
OF_NCCL = {
    "not-joined": ("not-joined", 2, SIXTH),
    "diverged": ("diverged", 1, SIXTH),
    "other-size": ("diverged", 3, SIXTH),
    "subgroup": ("not-joined", 3, SIXTH),
    "killed": ("not-joined", 1, SIXTH),
    "deadlock": ("deadlock", 0, "all_reduce 6 of group 1 (undefined)"),
    "p2p": ("not-joined", 1, SIXTH),
}


@pytest.mark.parametrize("case", list(OF_NCCL))
def test_dumps_that_torch_wrote_of_nccl(case: str) -> None:
    """Of torch 2.11 on four H200 (2026-11-27, `tests/gpu/flight_recorder.py`): the rank that the program lets differ.

    Its torchfrtrace names the same rank, one of several (p2p: 0 and 1), or none (killed: its dump is missing).
    """
    found = explain_files([DUMPS / f"nccl-{case}"])
    assert (found.cause, found.rank, found.collective) == OF_NCCL[case]


def test_other_sizes_are_said() -> None:
    lines = [each.text for each in explain_files([DUMPS / "nccl-other-size"]).evidence]
    assert lines == [f"{SIXTH}; rank 3 called it with other sizes than rank 0"]


@pytest.mark.parametrize(("ranks", "expected"), [("01", ("not-joined", 1)), ("0", ("not-joined", 1))])
def test_a_message_that_does_not_come_blames_who_should_send_it(
    ranks: str, expected: tuple[str, int], tmp_path: Path
) -> None:
    """Where no rank reached another collective, as in a pipeline."""
    for rank in ranks:
        shutil.copy(DUMPS / f"nccl-p2p/nccl_trace_rank_{rank}", tmp_path)
    found = explain_files([tmp_path])
    assert (found.cause, found.rank) == expected
    assert found.collective == "recv 0<-1 of group 0 (default_pg)"


class _Bomb:
    def __reduce__(self) -> Any:
        return os.mkdir, ("made",)


HOSTILE = {
    "a call": pickle.dumps({"entries": [_Bomb()]}),
    "data that ends early": b"\x80\x02}",
    "an empty stack": b"\x80\x02.",
    "nested JSON": b"[" * 100_000,
    "no entries": b'{"entries": 3}',
    "another object": b"\x80\x02cos\nsystem\n.",
}


@pytest.mark.threat(23)
@pytest.mark.parametrize("content", HOSTILE.values(), ids=list(HOSTILE))
def test_a_file_that_is_not_a_dump_runs_nothing(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(content)
    assert read_dump(path) is None
    assert explain_files([tmp_path]).cause == "unknown"
    assert not (tmp_path / "made").exists()


@pytest.mark.threat(23)
def test_a_small_dump_takes_little_memory_and_time(tmp_path: Path) -> None:
    path = tmp_path / "nccl_trace_rank_0"
    nested = b"]q\x00" + b"".join(b"](h%ch%ceq%c" % (each, each, each + 1) for each in range(60))
    path.write_bytes(
        b"\x80\x02}(X\x07\x00\x00\x00entriesr\xff\xff\xff\xff](}X\x0b\x00\x00\x00input_sizes" + nested + b"seeu."
    )
    assert explain_files([tmp_path]).cause == "unknown"
    path.write_bytes(b"\x80\x02}(X\x07\x00\x00\x00entries](}(" + nested + b"K\x01ueu.")
    assert read_dump(path) == {"entries": [{"": 1}]}
