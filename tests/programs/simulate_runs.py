"""Simulates runs whose machines fail: chosen settings against the best fixed ones in the same runs.

    simulate_runs.py [RUNS [SEED]]

Machines fail at Llama 3's rate. A failure takes back the steps since the last checkpoint, and the time of a restart;
one in four is a hang, which ends at the limit that `files/watch.py` chooses. The best fixed setting is the best of 34
intervals, and its hangs are seen at once, which no setting can do. So the share is a lower bound. Jobs are three sizes
of models, and each preset whose time can be estimated, on 16, 128 and 1,024 machines of 8 B200.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from chartgen.checks.automatic import decide
from chartgen.checks.job import job_of
from chartgen.checks.speed import speed_of
from chartgen.checks.training import GPU_HOURS_BETWEEN_FAILURES, best_interval, rounded_steps, save_seconds
from chartgen.composer.composed import composed_chart
from chartgen.composer.library import open_library
from chartgen.composer.presets import for_values, preset_layers, presets
from chartgen.composer.target import load_target
from chartgen.errors import ChartgenError
from chartgen.helm.values import load_values

_HOUR = 3600.0
_DAYS = 30
# From the failure to the next step: pods anew, image there, imports, the checkpoint (facts of JobSet: minutes).
_RESTART = 7 * 60.0
_HANGS = 0.25  # Llama 3: NCCL watchdog timeouts and network, 8.4 % and more
_LIMIT = 300.0 + 120.0  # least seconds before a hang ends, with the grace period
_WRITTEN = 5.0  # GB/s of each machine of 8 GPUs (checks/checkpoint_time.py)


@dataclass(frozen=True)
class SimulatedJob:
    """A job: its GPUs, seconds of a step and of a save in which it waits, steps between saves (None = chosen here)."""

    name: str
    gpus: int
    step: float
    save: float
    interval: int | None = None


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


_SETS = "checkpoint.enabled=true,storage.outputs.from=pvc://a,steps=10000000,batch.global=8/gpu"


def jobs_of_presets() -> Iterator[SimulatedJob]:
    """Yield the runs of each preset, with the settings that chartgen chooses."""
    library = open_library()
    for preset in presets(library):
        files = preset_layers(preset, "gke-a4", library)
        for nodes in (16, 128, 1024):
            given = load_values(files, set_values=[_SETS, f"parallelism=auto,nodes={nodes}"])
            saves = given.data["checkpoint"]
            assert isinstance(saves, dict)
            saves.pop("interval", None)  # of the preset's own batch, whose steps take longer
            chart = composed_chart("compose", for_values(load_target("gke-a4", library), given.data))
            try:
                job = job_of(chart, decide(chart, replace(given, presets=len(files))).values)
            except ChartgenError:  # no formula covers its program
                continue
            if job and (found := speed_of(job).estimate):
                interval = int(job.values["checkpoint"]["interval"])
                name = f"{preset} on {job.world}"
                yield SimulatedJob(name, job.world, found.step_seconds.middle, save_seconds(job), interval)


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

    chosen = job.interval or rounded_steps(best_interval(job.save, job.gpus), job.step)
    best, interval = max((mean(each, 0.0), each) for each in sorted({round(1.3**power) for power in range(34)}))
    return mean(chosen, max(20 * job.step, _LIMIT)), best, chosen, interval


def main(runs: int = 10_000, seed: int = 1) -> None:
    """Print a line for each job."""
    jobs = [*JOBS, *jobs_of_presets()]
    for job in jobs:
        mine, best, chosen, interval = compare(job, runs // len(jobs), seed)
        share = f"{mine / best:.2%} of the best"
        print(f"{job.name:>30}: every {chosen} steps, goodput {mine:.2%}; best {interval}, {best:.2%}; {share}")  # noqa: T201


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
