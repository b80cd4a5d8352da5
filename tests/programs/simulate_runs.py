"""Simulates runs whose machines fail: chosen settings against the best fixed ones in the same runs.

    simulate_runs.py [RUNS [SEED]]

Machines fail at Llama 3's rate. A failure takes back the steps since the last checkpoint, and the time of a restart;
one in four is a hang, which ends at the limit that `files/watch.py` chooses. The best fixed setting is the best of 34
intervals, and its hangs are seen at once, which no setting can do. So the share is a lower bound.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass

from chartgen.checks.training import GPU_HOURS_BETWEEN_FAILURES, best_interval, rounded_steps

_HOUR = 3600.0
_DAYS = 30
# From the failure to the next step: pods anew, image there, imports, the checkpoint (facts of JobSet: minutes).
_RESTART = 7 * 60.0
_HANGS = 0.25  # Llama 3: NCCL watchdog timeouts and network, 8.4 % and more
_LIMIT = 300.0 + 120.0  # least seconds before a hang ends, with the grace period
_WRITTEN = 5.0  # GB/s of each machine of 8 GPUs (checks/checkpoint_time.py)


@dataclass(frozen=True)
class SimulatedJob:
    """A job: its GPUs, seconds of a step, and seconds of a save in which it waits."""

    name: str
    gpus: int
    step: float
    save: float


# GB of a checkpoint, and seconds of a step where the batch grows with the run.
JOBS = tuple(
    SimulatedJob(f"{name} on {gpus} GPUs", gpus, step, max(size / _WRITTEN / (gpus / 8), 5.0))
    for name, size, step, sizes in (
        ("8B", 112, 4.0, (64, 1024, 16384)),
        ("70B", 988, 12.0, (64, 1024, 16384)),
        ("405B", 5670, 20.0, (256, 2048, 16384)),
    )
    for gpus in sizes
)


def goodput(job: SimulatedJob, interval: int, limit: float, source: random.Random) -> float:
    """Return the share of a run's time that went into steps that were kept."""
    left, kept, end = 0.0, 0.0, _DAYS * 24 * _HOUR
    cycle = interval * job.step + job.save
    between = GPU_HOURS_BETWEEN_FAILURES * _HOUR / job.gpus
    while left < end:
        lives = min(source.expovariate(1 / between), end - left)
        kept += lives // cycle * interval * job.step
        left += lives + _RESTART + (limit if source.random() < _HANGS else 0.0)
    return kept / end


def compare(job: SimulatedJob, runs: int, seed: int) -> tuple[float, float, int, int]:
    """Return the mean goodput with the chosen settings and with the best fixed ones, and both intervals."""

    def mean(interval: int, limit: float) -> float:
        return sum(goodput(job, interval, limit, random.Random(seed + each)) for each in range(runs)) / runs  # noqa: S311

    chosen = rounded_steps(best_interval(job.save, job.gpus), job.step)
    best, interval = max((mean(each, 0.0), each) for each in sorted({round(1.3**power) for power in range(34)}))
    return mean(chosen, max(20 * job.step, _LIMIT)), best, chosen, interval


def main(runs: int = 10_000, seed: int = 1) -> None:
    """Print a line for each job."""
    for job in JOBS:
        mine, best, chosen, interval = compare(job, runs // len(JOBS), seed)
        share = f"{mine / best:.2%} of the best"
        print(f"{job.name:>19}: every {chosen} steps, goodput {mine:.2%}; best {interval}, {best:.2%}; {share}")  # noqa: T201


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
