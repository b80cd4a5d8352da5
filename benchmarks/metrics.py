"""Speed and memory of `chartgen metrics` against its budgets: the second part of `make bench`.

Logs are written as the frameworks write them: 200 MB of which most is the talk of NCCL and of data loaders, as in a run
with NCCL_DEBUG=INFO, and 200 MB of nothing but steps, which is half a million of them and more.
"""

from __future__ import annotations

import compileall
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench import CHARTGEN, ROOT, Figure, Run, interleave

SIZE = 200_000_000
BEGIN = 1_770_000_000
WORDS = ("Channel", "via", "P2P/CUMEM", "rank", "comm", "0x55d0c8a0", "ring", "tree", "loader", "iteration", "step")


def talk(number: int) -> str:
    """A line that tells no step."""
    words = " ".join(WORDS[number * step % len(WORDS)] for step in range(1, 13))
    return f"[default{number % 8}]:host-{number % 64}:{number}:{number * 7} [{number % 8}] NCCL INFO {words}\n"


def megatron(number: int) -> str:
    """A line of Megatron-LM with the time of each step a little different."""
    milliseconds = 3000 + number * 7919 % 100
    return (
        f" [2026-02-06 {number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}.918469] "
        f"iteration {number:8d}/ 5000000 | consumed samples: {number * 256:12d} | elapsed time per iteration (ms): "
        f"{milliseconds}.5 | throughput per GPU (TFLOP/s/GPU): 478.0 | learning rate: 9.568256E-08 | global batch size:"
        f"   256 | lm loss: {9 - number / 1e6:.6E} | loss scale: 1.0 | grad norm: 1.797 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def dllogger(number: int) -> str:
    """A line of DLLogger."""
    data = {"reduced_train_loss": 7.9, "lr": 3.8e-05, "global_step": float(number), "grad_norm": 7.8}
    data |= {"consumed_samples": 2048.0 * (number + 1), "train_step_timing in s": 25 + number * 7919 % 100 / 100}
    record = {"timestamp": str(BEGIN + 25.0 * number), "type": "LOG", "step": number, "data": data}
    return f"DLLL {json.dumps(record)}\n"


def bridge(number: int) -> str:
    """The lines of Megatron-Bridge: its own, and that of Megatron-LM."""
    return (
        f"Step Time : {3 + number * 7919 % 100 / 100:.2f}s GPU utilization: 478.0MODEL_TFLOP/s/GPU\n{megatron(number)}"
    )


def of_pod(number: int) -> str:
    """A line of Megatron-LM as kubectl logs --prefix --timestamps writes it."""
    seconds = f"{number // 60 % 60:02d}:{number % 60:02d}.{number * 7919 % 10**9:09d}"
    return f"[pod/my-run-workload-0-0-x7k2p/train] 2026-02-06T{number // 3600 % 24:02d}:{seconds}Z {megatron(number)}"


def mllog(number: int) -> str:
    """A line of MLPerf."""
    record = {"namespace": "", "time_ms": 1000 * BEGIN + 3000 * number, "event_type": "POINT_IN_TIME"}
    record |= {"key": "tracked_stats", "value": {"throughput": 2.5 + number * 7919 % 100 / 100}}
    return f":::MLLOG {json.dumps(record | {'metadata': {'file': 'train.py', 'lineno': 176, 'step': 8 * number}})}\n"


def mixed(number: int) -> str:
    """One step in 20 lines."""
    return talk(number) if number % 20 else megatron(number // 20 + 1)


def write(path: Path, line: Callable[[int], str], size: int) -> str:
    """Write a log of some bytes; gives its name."""
    with path.open("w") as stream:
        number = written = 0
        while written < size:
            number += 1
            written += stream.write(line(number))
    return str(path)


def measure(folder: Path, size: int = SIZE) -> list[Figure]:
    """Time whole processes on large logs, and on one of 50 steps."""
    busy = write(folder / "mixed.log", mixed, size)
    dense = write(folder / "steps.log", megatron, size)
    json_lines = write(folder / "dllogger.log", dllogger, size)
    pairs = write(folder / "bridge.log", bridge, size)
    pod = write(folder / "pod.log", of_pod, size)
    samples = write(folder / "mllog.log", mllog, size)
    small = write(folder / "small.log", mixed, size // 10)
    commands = {
        "mixed": [CHARTGEN, "metrics", busy],
        "small": [CHARTGEN, "metrics", small],
        "steps": [CHARTGEN, "metrics", dense],
        "dllogger": [CHARTGEN, "metrics", json_lines],
        "bridge": [CHARTGEN, "metrics", pairs],
        "pod": [CHARTGEN, "metrics", pod],
        "mllog": [CHARTGEN, "metrics", samples],
        "wc": ["wc", "-l", busy],
        "grep": ["grep", "-c", "elapsed time per iteration", busy],
    }
    runs = interleave(commands, 3)
    short = folder / "dllogger.json"
    short.write_text("".join(dllogger(number) for number in range(50)))
    cold = {"cold": [CHARTGEN, "metrics", str(short)], "imports": [sys.executable, "-c", "import json, click"]}
    return figures(runs | interleave(cold, 25))


def figures(runs: dict[str, list[Run]]) -> list[Figure]:
    """Compare the runs with the budgets."""
    seconds = {name: statistics.median(run.seconds for run in taken) for name, taken in runs.items()}
    memory = {name: max(run.megabytes for run in taken) for name, taken in runs.items()}
    return [
        Figure("chartgen metrics, 200 MB of which 5 % of lines are steps", seconds["mixed"], 5, "s"),
        Figure("chartgen metrics, 200 MB of steps only", seconds["steps"], 5, "s"),
        Figure("chartgen metrics, 200 MB of DLLogger lines", seconds["dllogger"], 5, "s"),
        Figure("  the same, kubectl logs --prefix --timestamps", seconds["pod"], 5, "s"),
        Figure("  the same, MLPerf", seconds["mllog"], None, "s"),
        Figure("  the same, Megatron-Bridge, each step in two lines", seconds["bridge"], None, "s"),
        Figure("  200 MB / wc -l of the same file", seconds["mixed"] / seconds["wc"], None, "x"),
        Figure("  200 MB / grep -c of the same file", seconds["mixed"] / seconds["grep"], None, "x"),
        Figure("peak memory, 200 MB of which 5 % of lines are steps", memory["mixed"], 60, "MB"),
        Figure("  the same, 20 MB", memory["small"], None, "MB"),
        Figure("  the same, 200 MB of steps only", memory["steps"], 60, "MB"),
        Figure("chartgen metrics, 50 steps / import json, click", seconds["cold"] / seconds["imports"], 1.5, "x"),
        Figure("  median: chartgen metrics, 50 steps", seconds["cold"] * 1e3, None, "ms"),
        Figure("  median: import json, click", seconds["imports"] * 1e3, None, "ms"),
    ]


def main() -> int:
    """Measure, print the table, and say by the exit code whether every budget holds."""
    compileall.compile_dir(ROOT / "chartgen", quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder))
    print("\n".join(figure.row() for figure in found))
    return 1 if any(figure.over for figure in found) else 0


if __name__ == "__main__":
    sys.exit(main())
