"""What logs tell: steps, checkpoints, starts and settings.

A step is a tuple, not a dataclass: a long run has a million of them, and a frozen dataclass takes three times as long.
"""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple, TypeAlias

NEVER = math.nan


class Step(NamedTuple):
    """One training step, or several that were logged together.

    Args:
        number: The step, as the log counts.
        when: When its line was written, in seconds of an epoch; nan = not told.
        values: What was logged, by the names of VALUES.
        planned: Steps of the whole run; 0 = not told.
    """

    number: int
    when: float
    values: dict[str, float]
    planned: int = 0


class Steps(NamedTuple):
    """Many steps with the same values, as columns: what most of a long log is.

    Args:
        numbers: The steps, each above the one before.
        when: When the line of each was written, in seconds of an epoch; nan = not told.
        columns: What was logged, by the names of VALUES.
        planned: Steps of the whole run; 0 = not told.
    """

    numbers: array[int]
    when: array[float]
    columns: dict[str, array[float]]
    planned: int


class Timings(NamedTuple):
    """All step times of a run at once, as NeMo 1 writes them at its end.

    Args:
        seconds: Step times.
        when: When they were written; nan = not told.
    """

    seconds: list[float]
    when: float


class Checkpoint(NamedTuple):
    """One sign of a checkpoint.

    Args:
        sign: start, end (it can be used), saved (its step goes on), or load.
        step: The step; -1 = not told.
        when: When, in seconds of an epoch; nan = not told.
        seconds: How long it took; nan = not told.
        section: How many configurations were printed before it.
    """

    sign: str
    step: int
    when: float
    seconds: float = NEVER
    section: int = 0


class Setting(NamedTuple):
    """One setting of the program.

    Args:
        name: Its native name, such as num_layers.
        value: As it was written.
    """

    name: str
    value: str


class Start(NamedTuple):
    """A program began to print its configuration: a new run, or the same run again.

    Args:
        when: When; nan = not told.
        fresh: Whether it is a new run for sure.
    """

    when: float
    fresh: bool = False


class Mark(NamedTuple):
    """Something else that carries a time: the start or end of a run, and a score.

    Args:
        kind: run_start, run_stop or eval.
        when: When; nan = not told.
        text: What it says: `success`, `aborted`, or a number.
        section: How many configurations were printed before it.
        step: The step of an evaluation; -1 = not told.
        samples: How many it comes after; nan = not told.
    """

    kind: str
    when: float
    text: str = ""
    section: int = 0
    step: int = -1
    samples: float = NEVER


class Remark(NamedTuple):
    """Something in the log that its reader has to be told.

    Args:
        text: One sentence without a final stop.
        against: Column of values that it speaks against; empty = none.
    """

    text: str
    against: str = ""


Event: TypeAlias = Step | Steps | Timings | Checkpoint | Setting | Start | Mark | Remark

# Names of a step's values, with units.
VALUES = {
    "seconds": "s",
    "span": "steps that the line stands for, where the program tells",
    "loss": "",
    "rate": "learning rate",
    "samples": "samples since the beginning",
    "batch": "samples a step",
    "tflops": "TFLOPS per GPU, as the program counts them",
    "tokens": "tokens/s per GPU",
    "sequence": "tokens of a sample",
    "validation": "loss of the last evaluation",
    "gradient": "",
    "memory": "GB (10^9 bytes) per GPU",
    "skipped": "steps",
    "nans": "steps",
    "energy": "J per GPU and step",
}
