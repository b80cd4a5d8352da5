"""Choose one run of a log with several: a run begins where a configuration contradicts the previous one or is new."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from itertools import filterfalse
from math import inf, isnan
from typing import TypeAlias

from chartgen.errors import Problem, UsageError
from chartgen.metrics.figures.facts import FigureNote, facts_of, join_facts
from chartgen.metrics.read.events import NEVER, Checkpoint, Mark
from chartgen.metrics.read.log import EPOCH, Log
from chartgen.metrics.read.track import Attempt

# The start of a run: index of its first step, index of its first configuration, its settings.
_Run: TypeAlias = tuple[int, int, Mapping[str, str]]


def choose_run(log: Log, number: int | None) -> tuple[Log, Mapping[str, str], list[FigureNote]]:
    """Choose a run.

    Args:
        log: A log with steps.
        number: Number of the run, from 1; None = the last.

    Returns:
        The log of the run, its settings, and notices for the reader.

    Raises:
        UsageError: The log does not contain this run.
    """
    runs = _runs(log)
    if number and number > len(runs):
        count = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
        hint = "a new run has other settings, or starts after the end of the one before; any other start is a restart"
        raise UsageError(Problem(f"no run {number}: the log contains {count}", log.places[0], hint=hint))
    at = (number or len(runs)) - 1
    if len(runs) == 1:
        return log, runs[0][2], []
    hint = f"--run N chooses, 1 to {len(runs)}"
    what = "the log contains" if len(log.places) == 1 else "the logs contain"
    notices = [] if number else [FigureNote(f"{what} {len(runs)} runs; this is the last", hint)]
    return _cut(log, runs, at), runs[at][2], notices


def count_runs(log: Log) -> int:
    """Return the number of runs in a log."""
    return len(_runs(log))


def _is_fresh(log: Log, attempt: Attempt) -> bool:
    """Report whether the steps start from the first one after all planned steps.

    Logs of torchtitan contain neither these nor a configuration, so every start without a checkpoint is a new run.
    """
    numbers, begin = log.track.numbers, attempt.begin
    done = numbers[begin - 1] >= attempt.before - 1 if attempt.before else log.track.family == "torchtitan"
    return begin > 0 and numbers[begin] <= 1 and done


def _runs(log: Log) -> list[_Run]:
    runs: list[_Run] = [(0, 0, log.sections[0])]
    for attempt in log.track.attempts():
        own = log.sections[attempt.section]
        begin, section, settings = runs[-1]
        fresh = attempt.section in log.fresh and attempt.section > section
        if (
            fresh
            or _is_fresh(log, attempt)
            or join_facts([("then", facts_of(settings)), ("now", facts_of(own))]).notices
        ):
            runs.append((attempt.begin, attempt.section, own))
        elif own:
            runs[-1] = (begin, section, own)
    return runs


def _cut(log: Log, runs: list[_Run], at: int) -> Log:
    begin, section, _ = runs[at]
    end, behind = runs[at + 1][:2] if at + 1 < len(runs) else (len(log.track), len(log.sections))
    # runs without a configuration share the section, and only the time tells them apart
    since = log.track.when[begin] if at and runs[at - 1][1] == section else -inf
    until = log.track.when[end] if end < len(log.track) and behind == section else inf
    behind = max(behind, section + 1)
    run = copy(log)
    run.track = log.track.part(begin, end)
    ends = [begin for begin, _ in log.parts[1:]] + [len(log.track)]
    kept = [place for (first, place), last in zip(log.parts, ends, strict=True) if first < end and last > begin]
    run.places, run.sections = tuple(kept) or log.places, log.sections[:behind]

    def belongs(each: Checkpoint | Mark) -> bool:
        return section <= each.section < behind and not (each.when < since or each.when >= until)

    run.checkpoints = [*filter(belongs, log.checkpoints)]
    run.marks = [*filter(belongs, log.marks)]
    # most logs do not contain the program start of a later run
    run.begun = log.starts.get(section, NEVER) if at else log.begun
    timed: list[Checkpoint | Mark] = [*run.marks]
    timed += [] if run.track.family in EPOCH else run.checkpoints
    times = [*run.track.when, *(each.when for each in timed)]
    run.ended = max(filterfalse(isnan, times), default=NEVER)
    return run
