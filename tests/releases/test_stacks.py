"""`chartgen stacks`: which processes of a pod are ranks, and which rank is not where the others are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from rendered import rendered

from chartgen.errors import ChartgenError
from chartgen.releases.status import pod_stacks
from chartgen.releases.status.members import Member
from chartgen.releases.status.stacks import group, odd, span

# What py-spy 0.4.3 wrote of a program that waits in a function of a function.
DUMP: Any = json.loads((Path(__file__).parents[1] / "data/py-spy-0.4.3.json").read_text())
PY_SPY = Path(sys.executable).with_name("py-spy")
WAIT = "import sys; print(flush=True); sys.stdin.read()"
# A loader of data inherits the variables of its rank.
LOADS = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WAIT!r}])"
FIRST = 700_000  # no other program of this machine has such ranks


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[list[int]]:
    """Starts four ranks as torchrun, mpirun and the watch for hangs do, and gives their processes."""
    (watch,) = (
        each["data"]["watch.py"] for each in rendered("run.hangMinutes=3") if "watch.py" in each.get("data", ())
    )
    (tmp_path / "watch.py").write_text(watch)
    watched = [sys.executable, str(tmp_path / "watch.py"), str(tmp_path / "ranks"), sys.executable, "-c", WAIT]
    limits = {"HANG_SECONDS": "60", "STEP_LINE": "", "GRACE_SECONDS": "30"}
    with ExitStack() as stack:
        found = []
        for number, (prefix, argv) in enumerate(
            (
                ("", [sys.executable, "-c", LOADS]),
                ("OMPI_COMM_WORLD_", [sys.executable, "-c", WAIT]),
                ("", watched),
                ("", ["sh", "-c", "echo; cat"]),
            )
        ):
            own = {f"{prefix}LOCAL_RANK": str(number), f"{prefix}RANK": str(FIRST + number), **limits}
            process = subprocess.Popen(
                argv, env={**os.environ, **own}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            stack.enter_context(process)
            assert process.stdin
            assert process.stdout
            stack.callback(process.stdin.close)
            process.stdout.readline()
            found.append(process.pid)
        yield found


def dump(folder: Path, *, installed: bool = True) -> Any:
    """What a pod answers."""
    (folder / "bin").mkdir()
    if installed:
        (folder / "bin/py-spy").symlink_to(PY_SPY)
    script = Path(pod_stacks.__file__).read_text()
    argv = [sys.executable, "-c", script]
    return json.loads(subprocess.run(argv, env={"PATH": f"{folder}/bin"}, capture_output=True, check=True).stdout)


@pytest.mark.usefixtures("built_helm")
def test_each_rank_is_dumped_once_and_neither_its_loaders_nor_its_watch(tmp_path: Path, ranks: list[int]) -> None:
    found = {each["rank"]: each for each in dump(tmp_path)["ranks"] if each["rank"] >= FIRST}
    assert [*found] == [FIRST, FIRST + 1, FIRST + 2, FIRST + 3]
    assert [found[FIRST + number]["threads"][0]["pid"] for number in (0, 1)] == ranks[:2]
    watched = found[FIRST + 2]["threads"][0]["pid"]
    assert Path(f"/proc/{ranks[2]}/task/{ranks[2]}/children").read_text().split() == [str(watched)]
    assert found[FIRST]["threads"][0]["frames"][-1]["name"] == "<module>"
    assert found[FIRST + 3]["error"] == "Error: Failed to find python version from target process"


def test_an_image_without_the_program_is_named(tmp_path: Path) -> None:
    assert dump(tmp_path, installed=False) == {"missing": True, "ranks": []}


def member(number: int) -> Member:
    return Member(
        name=f"pod-{number}", uid="", index=number, place=(), gpus=8, ranks=range(8 * number, 8 * number + 8),
        machine=f"node-{number}", container="train", phase="Running", ready=True, started=True, since=None, restarts=0,
        program_restarts=0, ends=(), unplaced="", stuck=None,
    )  # fmt: skip


def test_the_rank_that_differs_is_named_and_unknown_ones_are_not_it() -> None:
    elsewhere = [{**DUMP[0], "frames": DUMP[0]["frames"][1:]}]
    loader = {**DUMP[0], "thread_name": "loader", "frames": DUMP[0]["frames"][2:]}
    answers: dict[Member, Any] = {
        member(0): {"missing": False, "ranks": [{"rank": rank, "threads": [loader, *DUMP]} for rank in range(8)]},
        member(1): {
            "missing": False,
            "ranks": [{"rank": rank, "threads": elsewhere if rank == 13 else DUMP} for rank in range(8, 16)],
        },
        member(2): ChartgenError("pod pod-2 has not answered for 300 s"),
    }
    most, unknown, one_out = group(answers)
    assert span(most.ranks) == "0-12, 14-15"
    assert most.frames[0] == "all_reduce_that_never_ends (pretrain_gpt.py:3)"
    assert (span(unknown.ranks), unknown.error) == ("16-23", "pod pod-2 has not answered for 300 s")
    assert (one_out.ranks, one_out.machines, one_out.frames) == ((13,), ("node-1",), most.frames[1:])
    assert odd([most, unknown, one_out]) == one_out
    assert odd([most, unknown]) is None, "a pod that does not answer is not at another place"
