"""A run that is killed at random steps ends with the weights of an unbroken one, bit by bit."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

from real_gpus import PLAIN, TINY, Run, execute, megatron, needs, ranks, show, values

CHART = "onprem-p8000"
STEPS, INTERVAL = 120, 20
KILLS = int(os.environ.get("CHARTGEN_KILLS", "3"))
EXACT = {"NCCL_ALGO": "Ring", "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "NVTE_ALLOW_NONDETERMINISTIC_ALGO": "0"}
_LOSS = re.compile(r"iteration +(\d+)/.*? lm loss: (\S+)")


def losses(*runs: Run) -> dict[int, set[str]]:
    """All texts of each iteration's loss: those computed a second time after a restart are beside the first.

    Without the second of each start: Megatron-LM prints the mean of the first and the second there.
    """
    found: dict[int, set[str]] = {}
    for run in runs:
        first, _, *others = _LOSS.findall(run.log)
        for step, loss in (first, *others):
            found.setdefault(int(step), set()).add(loss)
    return found


def weights(root: Path, step: int) -> dict[str, Any]:
    """Tensors of the checkpoint of a step."""
    import torch  # type: ignore[import-not-found]
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save  # type: ignore[import-not-found]

    sys.path.append(str(megatron().parent))  # a checkpoint has objects of its classes
    (folder,) = root.rglob(f"iter_{step:07}")
    dcp_to_torch_save(folder, root / "whole.pt")
    return _tensors(torch.load(root / "whole.pt", weights_only=False), "")


def _tensors(part: Any, path: str) -> dict[str, Any]:
    if isinstance(part, dict):
        return {name: value for key, each in part.items() for name, value in _tensors(each, f"{path}/{key}").items()}
    return {path: part} if hasattr(part, "untyped_storage") else {}


def killed_after(run: Run, steps: int, rank: int, root: Path) -> tuple[int, float]:
    """Kill a rank once the run computed so many steps; return the last of them, and when."""
    run.wait_for(lambda: run.losses)
    last = min(run.losses) + steps
    run.wait_for(lambda: max(run.losses) >= last)
    os.kill(ranks(root)[rank], signal.SIGKILL)
    moment = time.monotonic()
    assert run.end(90) in {1, 137}, run.log[-3000:]
    return max(run.losses), moment


def test_a_run_that_is_killed_ends_with_the_same_weights(tmp_path: Path) -> None:
    needs(2)
    import torch

    sizes = {"nodes": 1, "gpusPerNode": 2, "steps": STEPS, "checkpoint": {"enabled": True, "interval": INTERVAL}}
    program = {"program": str(megatron()), "config": {**PLAIN, "deterministic-mode": True}}
    exact = {"parallelism": {"distributedOptimizer": False}, "env": EXACT, "launchers": {"megatron-lm": program}}
    file = values(tmp_path, TINY, sizes, exact)
    whole = execute(CHART, file, tmp_path / "whole", tmp_path / "whole.log")
    assert whole.end(300) == 0, whole.log[-3000:]

    choose, root = random.Random(7), tmp_path / "broken"  # noqa: S311
    runs, waits, again = [execute(CHART, file, root, tmp_path / "0.log")], [], []
    for kill in range(KILLS):
        last, moment = killed_after(
            runs[-1], choose.randint(INTERVAL, STEPS // (KILLS + 1)), choose.randint(0, 1), root
        )
        runs.append(execute(CHART, file, root, tmp_path / f"{kill + 1}.log"))
        runs[-1].wait_for(lambda: runs[-1].losses)
        waits.append(round(time.monotonic() - moment, 1))
        again.append(last + 1 - min(runs[-1].losses))
    assert runs[-1].end(300) == 0, runs[-1].log[-3000:]

    show(f"seconds from each kill to the next step: {waits}; steps computed again: {again}")
    computed, expected = losses(*runs), losses(whole)
    assert len(computed) >= STEPS - KILLS - 1
    assert [step for step in computed if step in expected and computed[step] != expected[step]] == []
    assert max(again) <= 2 * INTERVAL  # the checkpoint may still be written when the next one begins
    ours, theirs = weights(root, STEPS), weights(tmp_path / "whole", STEPS)
    assert ours.keys() == theirs.keys()
    assert len(ours) > 10
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []
