"""A run that hangs: `run.hangMinutes` ends it with the stacks of its processes and an exit code of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from fake_torchrun import install
from pod_runner import Machine, run
from rendered import env, one, rendered

from chartgen.releases.why.explanation import explain_files

LOGS = Path(__file__).parents[1] / "data/logs"
WATCH = Path(__file__).parents[2] / "chartgen/library/workloads/common/files/watch.py"
# Rank 1 prints steps, as the last rank does with Megatron-LM; both end in a wait for the other.
PROGRAM = """\
import os, pathlib, signal, sys, time
there = pathlib.Path(os.environ["CHECKPOINT_DIRECTORY"], "rank-0-is-there")
rank = int(os.environ["RANK"])
signal.signal(signal.SIGTERM, lambda *_: None)
def all_reduce_that_never_ends():
    time.sleep(600)
if rank == 0:
    there.touch()
while not there.exists():
    time.sleep(0.02)
for step in range(1, 4):
    if rank == 1:
        sys.stdout.write(f" iteration {step:8}/ 100 | elapsed time\\n")
        sys.stdout.flush()
if os.environ.get("HANGS", "01").find(str(rank)) >= 0:
    all_reduce_that_never_ends()
sys.exit(int(os.environ.get("CODE", "0")) if rank == 1 else 0)
"""
OWN = {"image": "example.com/own:1", "program": "/etc/chartgen/own.py"}


@lru_cache
def made(**more: Any) -> Any:
    values = {
        "launcher": "torchrun", "nodes": 1, "gpusPerNode": 2,
        "launchers": {"torchrun": {**OWN, "files": {"own.py": PROGRAM}}},
        "run": {"hangMinutes": 3, **more},
    }  # fmt: skip
    return run(json=tuple(f"{name}={json.dumps(value)}" for name, value in values.items()))


def finish(folder: Path, found: Any, **variables: str) -> tuple[int, str]:
    install(folder)
    machine = Machine(folder, {"PYTHONPATH": str(folder / "modules"), **variables})
    return machine.finish(found)


def test_all_stacks_of_the_machine_are_printed_and_the_exit_code_is_its_own(tmp_path: Path) -> None:
    code, log = finish(tmp_path, made(), HANG_SECONDS="1")
    assert code == 75, log
    assert log.count("in all_reduce_that_never_ends") == 2, log
    assert "chartgen: no step for " in log
    assert "exitcode  : 75" in log


def test_a_run_that_takes_its_steps_is_left_alone_and_keeps_its_exit_code(tmp_path: Path) -> None:
    for code in ("0", "37"):
        folder = tmp_path / code
        folder.mkdir()
        done, log = finish(folder, made(), HANGS="", CODE=code)
        assert (done, log.count(" iteration ")) == (int(code), 3), log


def test_a_process_that_waits_for_a_failed_one_prints_its_stacks_and_ends(tmp_path: Path) -> None:
    """torchrun alone waits half a minute for it, and then nothing is printed; the limit is not given but chosen."""
    code, log = finish(tmp_path, made(hangMinutes=None, stepLine="iteration"), HANGS="0", CODE="37", PATIENCE="30")
    assert (code, log.count("in all_reduce_that_never_ends")) == (37, 1), log


def test_before_its_first_step_a_program_may_take_its_time(tmp_path: Path) -> None:
    """And other machines, which print no step, show their stacks when their pod ends."""
    install(tmp_path)
    machine = Machine(tmp_path, {"PYTHONPATH": str(tmp_path / "modules"), "HANG_SECONDS": "1", "GRACE_SECONDS": "6"})
    process = machine.start(made(stepLine="no line of the program"))
    assert process.stdout
    seen = [process.stdout.readline() for _ in range(3)]
    time.sleep(2)  # twice the limit: a watch that counts from the start would have ended it
    process.send_signal(signal.SIGTERM)
    log = process.communicate(timeout=180)[0]
    assert "".join(seen).count("iteration") == 3
    assert process.returncode, log
    assert "in all_reduce_that_never_ends" in log
    assert "no step for" not in log


def test_a_run_whose_first_step_never_comes_ends_too(tmp_path: Path) -> None:
    found = made(stepLine="no line of the program")
    code, log = finish(tmp_path, found, HANG_SECONDS="1", FIRST_STEP_SECONDS="2", HANGS="01")
    assert code == 75, log
    assert log.count("in all_reduce_that_never_ends") == 2, log
    assert sorted(box.name for box in tmp_path.rglob("blackbox/rank-*.log")) == ["rank-0.log", "rank-1.log"]


@pytest.mark.parametrize(
    ("other", "machines", "code"),
    [("print(' iteration 1/ 9', flush=True)", "1", 0), ("", "1", 75), ("", "2", 0)],
    ids=["another rank prints steps", "none does", "storage of its own"],
)
def test_a_rank_without_steps_is_ended_only_if_no_rank_has_any(
    tmp_path: Path, other: str, machines: str, code: int
) -> None:
    """Rank 0 prints none, and an earlier attempt left its file; one machine alone does not know of another's steps."""
    (tmp_path / "starting").mkdir()
    (tmp_path / "starting/0").touch()
    first = {"LOCAL_RANK": "0", "NNODES": machines, "HANG_SECONDS": "", "FIRST_STEP_SECONDS": "4"}
    path = f"import pathlib, time; there = pathlib.Path({str(tmp_path / 'there')!r})\n"
    other = f"{path}while not there.exists(): time.sleep(0.05)\n{other}"
    with ThreadPoolExecutor() as pool:
        silent = pool.submit(watch, tmp_path, f"{path}there.touch(); time.sleep(6)", **first, RANK="0")
        assert pool.submit(watch, tmp_path, other, **first, RANK="8").result().returncode == 0
        assert silent.result().returncode == code, silent.result().stdout


def test_pytorch_is_asked_for_its_dump_before_a_hang_ends(tmp_path: Path) -> None:
    """A dump of an earlier start is none; `tests/gpu/test_gpu_hang.py` has PyTorch's own."""
    (tmp_path / "blackbox").mkdir()
    (dump := tmp_path / "blackbox/nccl_trace_rank_3").write_text("of an earlier start")
    pytorch = """
import os, select, time
rank = os.environ["RANK"]
os.unlink(pipe := os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + rank + ".pipe")
os.mkfifo(pipe)
asked = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
print("step: 1", flush=True)
select.select([asked], [], [])
with open(os.environ["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"] + rank, "x") as file:
    file.write(f"dump {len(os.read(asked, 128))}")
time.sleep(60)
"""
    done = watch(tmp_path, pytorch, RANK="3")
    assert done.returncode == 75, done.stdout
    assert dump.read_text() == "dump 1"
    assert b"Current thread" in done.stdout


def watch(folder: Path, own: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    """Run a program below the watch, which waits a fifth of a second for its next step."""
    program = folder / "watch.py"
    program.write_text(one("ConfigMap", made())["data"]["watch.py"])
    variables = {
        **os.environ,
        "HANG_SECONDS": "0.2",
        "STEP_LINE": "",
        "GRACE_SECONDS": "30",
        "RUN_DIRECTORY": str(folder),
        **more,
    }
    (folder / "ranks").mkdir(exist_ok=True)
    argv = [sys.executable, str(program), f"{folder}/ranks", sys.executable, "-c", own, *arguments]
    return subprocess.run(argv, env=variables, capture_output=True, check=False, timeout=180)


@pytest.mark.parametrize("name", ["megatron-seconds.log", "nemo-bars.log", "nemo-2-speed.log", "torchtitan.log"])
def test_steps_of_genuine_logs_are_seen(tmp_path: Path, name: str) -> None:
    """A log without its last line is a run that hangs, and one without its steps is not watched."""
    text = (LOGS / name).read_bytes()
    (tmp_path / "log").write_bytes(text)
    copy = "shutil.copyfileobj(open(sys.argv[1], 'rb'), sys.stdout.buffer)"
    own = f"import shutil, sys, time; {copy}; sys.stdout.flush(); time.sleep(600)"
    done = watch(tmp_path, own, f"{tmp_path}/log")
    assert done.returncode == 75
    assert done.stdout.startswith(text)
    assert b"Current thread" in done.stdout


def test_coloured_steps_are_seen(tmp_path: Path) -> None:
    steps = "import time\nfor n in range(9): print(f'\\x1b[31mstep: {n}\\x1b[0m loss: 1', flush=True); time.sleep(0.3)"
    assert watch(tmp_path, steps, HANG_SECONDS="1").returncode == 0


@pytest.mark.parametrize(
    "line",
    [
        "saving checkpoint at iteration    1000 to /checkpoints in torch_dist format",
        "successfully saved checkpoint from iteration    1000 to /checkpoints [ t 1/8, p 1/4 ]",
        "successfully loaded checkpoint from /checkpoints [ t 1/8, p 1/4 ] at iteration 1000",
        "Loading the checkpoint at step 30.",
        "Resuming from step 30",
    ],
)
def test_a_rank_that_only_saves_or_loads_is_not_watched(tmp_path: Path, line: str) -> None:
    """With Megatron-LM the first rank prints no step: its silence is no hang."""
    done = watch(tmp_path, f"import time; print({line!r}, flush=True); time.sleep(2)")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("number", ["ended", ""])
def test_a_process_that_has_ended_keeps_no_stacks_of_the_others(tmp_path: Path, number: str) -> None:
    """Its number stays in the folder, and one that starts has not written it yet."""
    if number:
        process = subprocess.Popen(["true"])
        process.wait()
        number = f"{process.pid}\n"
    (tmp_path / "ranks").mkdir()
    (tmp_path / "ranks/0").write_text(number)
    done = watch(tmp_path, "import time; print(' iteration 1/ 9', flush=True); time.sleep(600)")
    assert (done.returncode, b"Current thread" in done.stdout) == (75, True), done


def test_the_other_processes_of_the_machine_get_the_signal_too(tmp_path: Path) -> None:
    """mpirun's processes write their parent's number behind their own."""
    other = subprocess.Popen(["sleep", "600"])
    (tmp_path / "ranks").mkdir()
    (tmp_path / "ranks/1").write_text(f"{other.pid} {os.getpid()}\n")
    done = watch(tmp_path, "import time; print(' iteration 1/ 9', flush=True); time.sleep(600)")
    assert (done.returncode, other.wait(10)) == (75, -signal.SIGUSR1)


def test_a_program_without_output_is_still_ended(tmp_path: Path) -> None:
    steps = "import os, time; print(' iteration 1/ 9', flush=True); os.dup2(os.open('/dev/null', 1), 1); os.dup2(1, 2)"
    assert watch(tmp_path, f"{steps}; time.sleep(600)").returncode == 75


def test_a_program_has_ended_although_its_child_prints_on(tmp_path: Path) -> None:
    child = "while true; do echo on || exit; sleep 0.02; done"
    own = f"import subprocess; subprocess.Popen(['bash', '-c', {child!r}]); print('x' * 60_000 + 'the end'); exit(3)"
    done = watch(tmp_path, own)
    assert (done.returncode, b"the end" in done.stdout) == (3, True)


def test_processes_of_mpirun_are_watched_too() -> None:
    found = rendered("run.hangMinutes=3", name="oke-h100", files=())
    (script,) = (each["data"]["rank.sh"] for each in found if "rank.sh" in each.get("data", ()))
    assert script.splitlines()[-1].startswith('exec python3 -u /etc/chartgen/watch.py "${CHARTGEN_PROCESSES:-/run/')


def test_nothing_changes_without_the_value() -> None:
    found = made(hangMinutes=0)
    assert "watch.py" not in json.dumps(one("ConfigMap", found)["data"])
    assert not {"HANG_SECONDS", "STEP_LINE", "GRACE_SECONDS"} & env(found).keys()
    watched = env(made(stepLine="$(loss)", gracePeriodSeconds=300))
    assert (watched["HANG_SECONDS"], watched["STEP_LINE"], watched["GRACE_SECONDS"]) == ("180", "$$(loss)", "300")


def test_a_failed_rank_leaves_a_black_box_that_why_reads(tmp_path: Path) -> None:
    code, log = finish(tmp_path, made(), HANG_SECONDS="1", OWN="a-secret-of-the-pod")
    assert code == 75, log
    boxes = sorted(tmp_path.rglob("blackbox/rank-*.log"))
    assert [box.name for box in boxes] == ["rank-0.log", "rank-1.log"]
    assert all(b"in all_reduce_that_never_ends" in box.read_bytes() for box in boxes)
    assert not any(b"a-secret" in box.read_bytes() for box in boxes)
    found = explain_files([boxes[0].parent])
    assert (found.cause, found.rank) == ("no-step", None), "each rank waits"


def test_a_rank_that_succeeds_leaves_none(tmp_path: Path) -> None:
    assert finish(tmp_path, made(), HANGS="")[0] == 0
    assert not list(tmp_path.rglob("blackbox/*"))


@pytest.mark.parametrize(("local", "boxes"), [("0", ["rank-0.log"]), ("1", [])])
def test_each_machine_that_is_stopped_leaves_one(tmp_path: Path, local: str, boxes: list[str]) -> None:
    """The controller ends it when another machine has failed, and its log goes with its pod."""
    own = "import os, time; print('the last line', flush=True); os.kill(os.getppid(), 15); time.sleep(60)"
    assert watch(tmp_path, own, LOCAL_RANK=local, RANK=local).returncode == 143
    found = sorted(tmp_path.rglob("rank-*.log"))
    assert [each.name for each in found] == boxes
    assert all("the last line" in each.read_text() and "exit code 143" in each.read_text() for each in found)


@pytest.mark.parametrize(("code", "ends"), [(17, True), (1, False)])
def test_a_final_exit_code_ends_the_launcher_and_the_code_of_an_earlier_start_does_not_count(
    tmp_path: Path, code: int, ends: bool
) -> None:
    (tmp_path / "processes.code").write_text("75")
    argv = [sys.executable, str(WATCH), str(tmp_path / "processes"), sys.executable, "-c", f"exit({code})"]
    launcher = f"import subprocess, time; subprocess.run({argv}); time.sleep({60 if ends else 0})"
    more = {"ENDING_EXITS": "17 78 93", "LOCAL_RANK": "0", "RUN_DIRECTORY": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", launcher], env={**os.environ, **more}, check=False, timeout=50)
    assert done.returncode == (-signal.SIGTERM if ends else 0)
    assert (tmp_path / "processes.code").read_text() == str(code)


def test_a_black_box_says_when_the_last_step_was_and_what_the_network_was(tmp_path: Path) -> None:
    (tmp_path / "prelude").write_text("transport: RDMA as promised, 8 adapters\n")
    own = "import time; time.sleep(2); print('step: 7', flush=True); time.sleep(1); exit(7)"
    assert watch(tmp_path, own, HANG_SECONDS="60", CHARTGEN_PRELUDE=str(tmp_path / "prelude")).returncode == 7
    (box,) = tmp_path.rglob("rank-*.log")
    (line,) = [each for each in box.read_text().splitlines() if each.startswith("blackbox: ")]
    assert re.search(r"; [1-9]\d* s after its last step; ", line)
    assert "transport: RDMA as promised, 8 adapters" in line
    assert explain_files([box]).cause != "network-contract"


def test_a_black_box_is_small(tmp_path: Path) -> None:
    done = watch(tmp_path, "import sys; print('x' * 10**6); sys.exit(7)")
    assert done.returncode == 7
    (box,) = tmp_path.rglob("rank-*.log")
    assert box.stat().st_size < 40_000


def test_without_a_value_a_run_is_watched_whose_steps_can_be_read() -> None:
    assert "HANG_SECONDS" not in env(made(hangMinutes=None)), "nothing describes the lines of this program"
    assert env(made(hangMinutes=None, stepLine="step"))["STEP_LINE"] == "step"
    found = env(rendered("launcher=megatron-lm", "evaluation.batches=40", files=()))
    assert found["EVALUATION_BATCHES"] == "40"
    assert not {"HANG_SECONDS", "STEP_LINE"} & found.keys()


def limit(steps: list[float], *, batches: int = 0, grace: int = 60) -> float:
    """Return the time that the watch gives the step after steps of these durations."""
    spec = importlib.util.spec_from_file_location("watch", WATCH)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    chosen, now = module.Limit(None, batches, grace), 100.0
    allowed = chosen.after_step(now)
    for step in steps:
        now += step
        allowed = chosen.after_step(now)
    return float(allowed)


@pytest.mark.parametrize(
    ("steps", "batches", "expected"),
    [
        ([], 0, 3600.0),
        ([0.5] * 9, 0, 360.0),
        ([30.0] * 9, 0, 600.0),
        ([30.0] * 9, 40, 1800.0),
        ([1.0] * 8 + [400.0], 0, 1200.0),
        ([900.0, *[1.0] * 200], 0, 2700.0),
    ],
    ids=["first step", "short steps", "long steps", "evaluations", "a checkpoint", "compilation"],
)
def test_the_limit_follows_from_the_steps_of_the_run(steps: list[float], batches: int, expected: float) -> None:
    assert limit(steps, batches=batches) == expected
