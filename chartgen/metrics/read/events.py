"""The events in logs: steps, checkpoints, starts and settings.

A step is a tuple, not a dataclass: a long run has a million of them, and a frozen dataclass takes three times as long.
`when` is a time in seconds of an epoch, where nan is unknown, as is a step of -1; `section` is the number of
configurations printed before an event.
"""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple, TypeAlias

NEVER = math.nan


class Step(NamedTuple):
    """One training step, or several steps logged together."""

    number: int  # the step, as the log counts
    when: float
    values: dict[str, float]  # the logged values, by the names of VALUES
    planned: int = 0  # steps of the whole run; 0 = unknown


class Steps(NamedTuple):
    """Many steps in rising order with the same values, as columns, like most of a long log."""

    numbers: array[int]
    when: array[float]
    columns: dict[str, array[float]]
    planned: int


class Timings(NamedTuple):
    """All step times of a run in one list, in seconds, as NeMo 1 writes them at its end."""

    seconds: list[float]
    when: float


class Checkpoint(NamedTuple):
    """One event of a checkpoint."""

    sign: str  # start, end (the checkpoint is usable), saved (training continues), or load
    step: int
    when: float
    seconds: float = NEVER  # its duration; nan = unknown
    section: int = 0


class Setting(NamedTuple):
    """One setting of the program, by its native name, such as num_layers."""

    name: str
    value: str


class Start(NamedTuple):
    """A program began to print its configuration: the same run again, or a new one, certainly if it is `fresh`."""

    when: float
    fresh: bool = False


class Mark(NamedTuple):
    """Another event with a time: the start or end of a run, or an evaluation."""

    kind: str  # run_start, run_stop, eval, or end (of the training, at a step that may not be logged)
    when: float
    text: str = ""  # its content: `success`, `aborted`, or a number
    section: int = 0
    step: int = -1  # the step of an evaluation
    samples: float = NEVER  # number of samples before it; nan = unknown
    epoch: float = NEVER  # its epoch, or the share of the first; nan = unknown


class Remark(NamedTuple):
    """A remark on the log for the user, against the column of that name; empty = none."""

    text: str
    against: str = ""


Event: TypeAlias = Step | Steps | Timings | Checkpoint | Setting | Start | Mark | Remark

# Names of a step's values, with units.
VALUES = {
    "seconds": "s",
    "span": "steps that the line covers, if the program logs them",
    "loss": "",
    "rate": "learning rate",
    "samples": "samples since the beginning",
    "batch": "samples a step",
    "tflops": "TFLOPS per GPU, as the program counts them",
    "mfu": "% of the peak that the program assumes",
    "tokens": "tokens/s per GPU",
    "sequence": "tokens of a sample",
    "kept": "tokens of a sample in layers that drop the others",
    "validation": "loss of the last evaluation",
    "gradient": "",
    "memory": "GB (10^9 bytes) per GPU",
    "skipped": "steps",
    "nans": "steps",
    "energy": "J per GPU and step",
}
