"""Logs that are written against their reader: it ends, in little memory, and prints no figure that cannot be.

Each runs as a process with a limit of processor time and of memory: what is not linear in the length of a line runs
into the first, what allocates as a number says into the second.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from chartgen.metrics.figures.facts import join_facts

MEGA = 1 << 20
# Seconds of processor time, and bytes of address space: reading the longest of these takes about a second.
_TIME, _MEMORY = 60, 2 << 30
STEP = (
    b" iteration        1/     100 | consumed samples:          256 | elapsed time per iteration (ms): 7000.0 |"
    b" lm loss: 9.000000E+00 |\n"
)


def metrics(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (_TIME, _TIME))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))

    command = [sys.executable, "-m", "chartgen", "metrics", str(path), *options]
    return subprocess.run(command, check=False, capture_output=True, text=True, preexec_fn=limit)


# What a pattern that goes back and forth needs n * n steps for.
LINES = {
    "checkpoints that are loaded": b"successfully loaded checkpoint " * (4 * MEGA // 31),
    "checkpoints that are saved": b"checkpoint save for step 1 ( " * (4 * MEGA // 29),
    "checkpoints of NeMo": b"Global Checkpoint Save : Rank: 1 : Start time: 1" * (4 * MEGA // 48),
    "memory of Megatron": b"(after 1 iterations) memory (MB) | allocated: " * (4 * MEGA // 46),
    "iterations": b"iteration 1/ 2 | elapsed time per iteration (ms): " * (4 * MEGA // 50),
    "one iteration of many fields": b"iteration 1/ 2 | elapsed time per iteration (ms): 5 |"
    + b" a: 1 |" * (4 * MEGA // 7),
    "evaluations": b"validation loss at iteration 1 | lm loss value: " * (4 * MEGA // 48),
    "bars": b"[global_step=" * (4 * MEGA // 13) + b"reduced_train_loss",
    "steps of NeMo 2": b"Training epoch 0, iteration 0/9 | train_step_timing in s: " * (4 * MEGA // 58),
    "steps of Automodel": b"step 1 | epoch 0 | loss 1 | /gpu) | num_label_tokens " * (4 * MEGA // 53),
    "steps of torchtitan": b"step: 1 GiB( loss: " * (4 * MEGA // 19),
    "steps of Bridge": b"Step Time : " + b" " * 4 * MEGA,
    "settings": b"- arguments -----\n" + b"num_layers: " * (4 * MEGA // 12),
    "a setting of blanks": b"- arguments -----\nnum_layers: " + b" " * 4 * MEGA + b"x y",
    "objects of DLLogger": b'DLLL {"data": ' * (4 * MEGA // 14),
    "results of MLPerf": b':::MLLOG {"key": "tracked_stats", ' * (4 * MEGA // 35),
    "a table of nccl-tests": b"algbw   busbw\n" + b"# all_reduce " * (4 * MEGA // 13),
    "a prefix": b"a/" * 2 * MEGA + b" memory (MB) | allocated",
}


@pytest.mark.threat(9)
@pytest.mark.parametrize("name", LINES)
def test_a_long_line_takes_time_as_its_length(name: str, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(LINES[name] + b"\n" + STEP)
    found = metrics(log, "--output", "json")
    assert found.returncode in (0, 1), found.stderr[-500:]
    assert "Traceback" not in found.stderr


HUGE = "9" * 18
COUNTS = {
    "a step": STEP.replace(b"        1/", HUGE.encode() + b"/"),
    "steps planned": STEP.replace(b"     100 ", HUGE.encode() + b" ") * 2,
    "a gap": STEP + STEP.replace(b"        1/", HUGE.encode() + b"/"),
    "a batch": STEP.replace(b" lm loss", b" global batch size: " + HUGE.encode() + b" | lm loss"),
    "a size of a message": b"algbw   busbw\n"
    + b" ".join([HUGE.encode()] * 2 + [b"float sum -1 1 1 1 0 1 1 1 0"])
    + b"\n",
    "digits without end": b"algbw   busbw\n" + b" ".join([b"9" * 1900] * 2 + [b"float sum -1 1 1 1 0 1 1 1 0"]) + b"\n",
    "samples": b':::MLLOG {"time_ms": 1, "key": "run_start", "value": null}\n'
    b':::MLLOG {"time_ms": 9000, "key": "tracked_stats", "value": {"train_step_time": 1e-300}, "metadata": {"step": '
    + HUGE.encode()
    + b"}}\n",
    "a batch of MLPerf": b':::MLLOG {"time_ms": 1, "key": "global_batch_size", "value": 1e308}\n' + STEP,
    "an evaluation": b':::MLLOG {"time_ms": 1, "key": "run_start", "value": null}\n'
    + b':::MLLOG {"time_ms": 9000, "key": "eval_accuracy", "value": 0.9, "metadata": {"samples_count": %d}}\n' % 10**30
    + b':::MLLOG {"time_ms": 9999, "key": "run_stop", "value": null}\n',
    "losses": b"".join(
        STEP.replace(b"    1/", b"%5d/" % n).replace(b"9.000000E+00", b"-1E+308" if n % 2 else b"1E+308")
        for n in range(40)
    ),
    "a time": b':::MLLOG {"time_ms": 1e308, "key": "run_start", "value": null}\n' + STEP,
}


@pytest.mark.threat(9)
@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("form", ["text", "json", "report"])
def test_a_number_allocates_nothing(name: str, form: str, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(COUNTS[name])
    options = ["--report", str(tmp_path / "run.html")] if form == "report" else ["--output", form]
    found = metrics(log, *options)
    assert found.returncode in (0, 1, 2), found.stderr[-500:]
    assert "Traceback" not in found.stderr


def test_no_figure_is_below_zero_or_above_what_a_gpu_can_do(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    line = STEP.replace(b" lm loss", b" throughput per GPU (TFLOP/s/GPU): 1742220.0 | lm loss").replace(
        b"7000.0", b"0.001"
    )
    log.write_bytes(b"".join(line.replace(b"    1/", b"%5d/" % number) for number in range(1, 40)))
    model = ["--model", "llama2-70b", "--sequence", "4096", "--gpus", "1", "--batch", "256"]
    found = metrics(log, *model, "--output", "json")
    assert found.returncode == 1
    told = json.loads(found.stdout)
    assert (told["tflopsPerGpu"], told["loggedTflopsPerGpu"], told["tokensPerSecondPerGpu"], told["mfu"]) == (None,) * 4


def test_sizes_that_no_run_has_are_not_facts(tmp_path: Path) -> None:
    """Neither more digits than a float has room for, nor what Python takes for a digit and not for a number."""
    log = tmp_path / "run.log"
    sizes = {"seq_length": "1" + "0" * 400, "global_batch_size": "1" + "0" * 17, "world_size": "²"}
    settings = "".join(f"  {name} ............ {value}\n" for name, value in sizes.items()).encode()
    steps = b"".join(STEP.replace(b"        1/", b"        %d/" % number) for number in range(1, 9))
    log.write_bytes(b"---- arguments ----\n" + settings + b"---- end of arguments ----\n" + steps)
    found = metrics(log, "--output", "json")
    assert found.returncode == 0, found.stderr[-500:]
    assert not {"gpus", "sequenceLength"} & json.loads(found.stdout)["facts"].keys()


def test_window_of_figures_that_are_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_bytes(STEP)
    found = metrics(tmp_path / "run.log", "--window", "²:3")
    assert (found.returncode, found.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    "known", [{"steps": "x"}, {"batch": [1]}, {"gpu": [1]}, {"precision": 8}, {"vocabularySize": {}}]
)
def test_a_fact_of_another_type_is_none(known: dict[str, object]) -> None:
    """Values of a release have any form: its schema is its author's."""
    assert join_facts([("the values", known), ("the log", {"vocabularySize": 100})]).known == {"vocabularySize": 100}
