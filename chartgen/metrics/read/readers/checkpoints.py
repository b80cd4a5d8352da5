"""Lines about checkpoints: Megatron-LM's, NeMo 1's and NeMo 2's.

`saving checkpoint at iteration      50 to DIR`, `successfully saved checkpoint from iteration      50 to DIR` (or at),
`successfully loaded checkpoint from DIR [...] at iteration 50`; `Checkpoint save for step 50 started at 1727.5`,
`Async checkpoint save for step 50 (DIR) finalized successfully at 1730.1`, `Global Checkpoint Save : Rank: 0 :
Iteration: 49 : Start time: 1727.500s : Save duration: 1.250s`, `Global Checkpoint Load : Rank : 0 : Start time : ...`.

Sources: NVIDIA/Megatron-LM @ d98e8a6, megatron/training/checkpointing.py; NVIDIA/NeMo @ 8cfedd7,
nemo/utils/callbacks/nemo_model_checkpoint.py, nemo/lightning/io/pl.py, nemo/utils/callbacks/dist_ckpt_io.py.
NeMo 2 counts the step from 0, except where a save is finalized. Start times are seconds of an epoch, those of lines may
be of any time zone, which only a line with both reveals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import isnan

from chartgen.metrics.read.events import NEVER, Checkpoint, Event
from chartgen.metrics.read.prefix import Prefix, line_time
from chartgen.metrics.read.readers import Reader

_SIGNS: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    ("end", re.compile(rb"\[NeMo I .{0,99}uccessfully saved checkpoint from iteration +(?P<before>\d+)")),
    ("start", re.compile(rb"saving checkpoint at iteration +(?P<step>\d+)")),
    ("end", re.compile(rb"[Ss]uccessfully saved checkpoint (?:from|at) iteration +(?P<step>\d+)")),
    ("load", re.compile(rb"successfully loaded checkpoint(?:.{0,5000} at iteration (?P<step>\d+))?")),
    ("start", re.compile(rb"Checkpoint save for step (?P<step>\d+) started(?: at (?P<when>[\d.]+\d))?")),
    (
        "end",
        re.compile(
            rb"checkpoint save for step (?P<step>\d+) \(.{0,5000}finalized successfully(?: at (?P<when>[\d.]+\d))?"
        ),
    ),
    (
        "saved",
        re.compile(
            rb"Global Checkpoint Save : Rank: \d+ :(?: Iteration: (?P<before>\d+) :)? Start time: (?P<when>[\d.]+)s : "
            rb"Save duration: (?P<seconds>[\d.]+)s"
        ),
    ),
    (
        "load",
        re.compile(
            rb"Global Checkpoint Load : Rank : \d+ : Start time : (?P<when>[\d.]+)s : "
            rb"Time spent in load_checkpoint: (?P<seconds>[\d.]+)s"
        ),
    ),
)


# Zones differ from UTC by at most 14 hours, in steps of a quarter (IANA time zone database, 2025b).
_FARTHEST, _QUARTER = 14 * 3600, 900


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    return Reader(CheckpointReader().read)


class CheckpointReader:
    """Converts times of an epoch to the clock of the log's lines."""

    def __init__(self) -> None:
        self._zone: float | None = None
        self._without = False

    def read(self, line: bytes, prefix: Prefix) -> Sequence[Event]:
        """Return the checkpoint of a line."""
        for sign, pattern in _SIGNS:
            if match := pattern.search(line):
                group: Callable[[str], bytes | None] = match.groupdict().get
                step = int(group("step") or (int(group("before") or -2) + 1))
                seconds, own = float(group("seconds") or NEVER), group("when")
                logged = line_time(prefix, line)
                if own:
                    when = self._converted(float(own), logged - (0 if isnan(seconds) else seconds))
                else:
                    when = NEVER if self._without and isnan(prefix.when) else logged
                return (Checkpoint(sign, step, when, seconds),)
        return ()

    def _converted(self, own: float, logged: float) -> float:
        """Convert a time of an epoch, given that of its line; nan = the line has none."""
        if not isnan(logged):
            zone = round((logged - own) / _QUARTER) * _QUARTER
            self._zone = zone if abs(zone) <= _FARTHEST else 0
        self._without = self._zone is None
        return own + (self._zone or 0)
