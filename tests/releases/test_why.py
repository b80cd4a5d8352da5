"""`chartgen why`: the first cause of a run's end, from logs, stacks and Flight Recorder dumps of any origin."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from answers import answer
from userlib import chartgen

from chartgen.helm.yaml import load_file
from chartgen.masking import masked
from chartgen.releases.why.causes import cause_table
from chartgen.releases.why.explanation import Explanation, explain_files

DEATHS: Any = load_file(Path(__file__).parents[1] / "data/deaths.yaml").data
STEP = (
    " iteration       {}/   1000 | consumed samples: 640 | elapsed time per iteration (ms): 900.1 | lm loss: 3.1E+00\n"
)


def explained(folder: Path, logs: Mapping[str, str | bytes]) -> Explanation:
    for name, text in logs.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return explain_files([folder])


@pytest.mark.parametrize("death", DEATHS, ids=lambda death: death["name"].replace(" ", "-"))
def test_the_first_cause_is_named(death: Any, tmp_path: Path) -> None:
    found = explained(tmp_path, death["logs"])
    assert found.cause == death["cause"]
    if "rank" in death:
        assert found.rank == death["rank"]
    if "collective" in death:
        assert found.collective == death["collective"]
    if "machine" in death:
        assert found.machine == death["machine"]
    assert (found.machine if found.restart == "elsewhere" else "") == death.get("blamed", "")
    assert found.hint
    assert found.evidence


def test_a_network_as_promised_is_no_cause(tmp_path: Path) -> None:
    said = ["transport: GPUDirect-TCPXO as promised, 8 adapters", "transport: warning: cannot determine whether ..."]
    logs = {"0.log": "\n".join([*said, "[rank0]: torch.OutOfMemoryError: CUDA out of memory."])}
    assert explained(tmp_path, logs).cause == "gpu-memory"


def test_every_pattern_has_a_trigger() -> None:
    table = cause_table()
    lines = [line for death in DEATHS for text in death["logs"].values() for line in text.splitlines()]
    unseen = [
        (row.name, line)
        for row in table.rows
        for line in lines
        if row.pattern and row.pattern.search(line) and table.of_line(line) is None
    ]
    assert unseen == []
    assert [row.name for row in table.rows if row.pattern and not _triggered(row.pattern.pattern, table.triggers)] == []


def _triggered(pattern: str, triggers: tuple[str, ...]) -> bool:
    """Report whether each alternative of a pattern contains a trigger."""
    return all(
        any(trigger in part.lower().replace("\\", "") for trigger in triggers) for part in _alternatives(pattern)
    )


def _alternatives(pattern: str) -> list[str]:
    """Split a pattern at its outermost bars."""
    found, depth = [""], 0
    plain = re.sub(r"\[[^\]]*?(\w?)\]", r"\1", re.sub(r"\\[()\[\]]", "", pattern))
    for letter in plain:
        depth += (letter == "(") - (letter == ")")
        if letter == "|" and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return found


def test_a_line_that_steps_follow_is_not_the_end(tmp_path: Path) -> None:
    survived = "ModuleNotFoundError: No module named 'apex'\n" + "".join(map(STEP.format, range(1, 5)))
    assert explained(tmp_path, {"run.log": survived + "RuntimeError: the end\n"}).cause == "exception"
    assert explained(tmp_path, {"run.log": survived}).cause == "unknown"


@pytest.mark.parametrize("failed", [False, True])
def test_closed_connections_after_the_end_of_training_are_no_cause(failed: bool, tmp_path: Path) -> None:
    store = "[rank{}]:[W403 11:49:27.8181 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=9): Failed to recv"
    raised = "Exception raised from recvBytes at /pytorch/torch/csrc/distributed/c10d/Utils.hpp:682 (most recent call):"
    report = "E0403 11:49:29 torch/distributed/elastic/api.py] failed (exitcode: 1) local_rank: 0" if failed else ""
    done = "node-1: [after training is done] datetime: 2026-04-03 11:48:34"
    logs = {"0.log": "\n".join([STEP.format(1000), done, store.format(1), raised, report]), "5.log": store.format(5)}
    assert explained(tmp_path, logs).cause == ("another-rank" if failed else "unknown")
    # another start of the program in the same file has no end of its own
    logs["0.log"] += "\n[before the start of training step] datetime: 2026-04-03 12:48:34\n" + STEP.format(7) + raised
    assert explained(tmp_path, logs).cause == "another-rank"


@pytest.mark.parametrize(
    "line",
    [
        "[WARNING] Error running lspci: [Errno 2] No such file or directory: 'lspci', fallback to device name",
        "m-1:1:1 [0] NCCL INFO NET/Plugin : Plugin load (libnccl-net.so) returned 2 : No such file or directory",
        "ucs_vfs_sock.c:101 UCX ERROR inotify_add_watch(/tmp) failed: No space left on device",
        "INFO: Unable to initialize backend 'tpu': libtpu.so: cannot open: No such file or directory",
    ],
)
def test_lines_of_runs_that_go_on_are_no_cause(tmp_path: Path, line: str) -> None:
    raised = "FileExistsError: [Errno 17] File exists: 'checkpoints'"
    assert explained(tmp_path, {"a.log": line}).cause == "unknown"
    assert explained(tmp_path, {"a.log": f"{line}\n{raised}"}).cause == "exception"


def test_clues_before_coloured_steps_and_the_end_of_training_are_none(tmp_path: Path) -> None:
    early = "OSError: [Errno 28] No space left on device\n"
    steps = "".join(f"\x1b[31mstep: {number}\x1b[0m loss: 1\n" for number in range(1, 5))
    ended = STEP.format(1) + "[after training is done] datetime: 2026-04-03 11:48:34\n"
    for log in (early + steps, early + ended):
        assert explained(tmp_path, {"a.log": log}).cause == "unknown"
    assert explained(tmp_path, {"a.log": early + ended + early}).cause == "disk-full"


def test_an_exception_that_python_ignores_is_no_cause(tmp_path: Path) -> None:
    ignored = (
        "Exception ignored in: <function _Loader.__del__ at 0x7f00>\nTraceback (most recent call last):\n"
        '  File "loader.py", line 3, in __del__\n    self.join()\nRuntimeError: {}\n'
    )
    raised = "Traceback (most recent call last):\nTypeError: step() takes 3 positional arguments\n"
    worker = ignored.format("worker (pid 12) is killed")
    assert explained(tmp_path, {"a.log": worker}).cause == "unknown"
    assert "TypeError" in explained(tmp_path, {"a.log": worker + raised}).evidence[0].text
    assert explained(tmp_path, {"a.log": ignored.format("CUDA error: an illegal memory access")}).cause != "unknown"


def test_a_line_is_not_cut_within_a_secret(tmp_path: Path) -> None:
    for size in range(960, 1040, 7):
        text = f"RuntimeError: CUDA out of memory {'x' * (size - 60)} https://bob:pa55word-of-bob@host/ {'y' * 99}"
        found = explained(tmp_path, {"a.log": text})
        assert found.cause == "gpu-memory"
        assert "pa55" not in masked(str(found))


def test_an_unknown_end_lists_what_was_read(tmp_path: Path) -> None:
    found = explained(tmp_path, {"a.log": STEP.format(1), "b.log": ""})
    assert (found.cause, found.examined) == ("unknown", ("a.log: 1 line", "b.log: 0 lines"))


def test_the_machine_that_only_ran_a_bad_program_is_not_blamed(tmp_path: Path) -> None:
    found = explained(tmp_path, {"run.log": "gpu-1:7:7 [0] NCCL INFO x\n[rank3]: ValueError: no\n"})
    assert (found.machine, found.restart) == ("gpu-1", "none")


def test_a_folder_of_logs_is_explained_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "run-0.log").write_text("[rank2]: PermissionError: [Errno 13] Permission denied: '/outputs/x'\n")
    found = answer(chartgen("why", str(tmp_path), "--output", "json").stdout)
    assert {key: found[key] for key in ("cause", "rank", "restart")} == {
        "cause": "no-permission",
        "rank": 2,
        "restart": "none",
    }
    assert found["evidence"][0]["place"] == "run-0.log:1"
    assert "rank 2" in chartgen("why", str(tmp_path)).output
    (tmp_path / "run-0.log").write_text("")
    assert chartgen("why", str(tmp_path)).exit_code == 1


def test_a_folder_without_files_is_a_usage_error(tmp_path: Path) -> None:
    assert chartgen("why", str(tmp_path)).exit_code == 2


def test_without_a_cluster_a_missing_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    monkeypatch.chdir(tmp_path)
    ran = chartgen("why", "logs")
    assert ran.exit_code == 3
    assert "error: logs: " in ran.stderr
