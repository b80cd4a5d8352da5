"""A run from its logs: steps in the order of the run, checkpoints, configurations, and times."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import filterfalse
from math import inf, isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING

from chartgen.errors import ChartgenError, Problem
from chartgen.metrics.read.collect import Collector, Log, last_of, worth
from chartgen.metrics.read.events import NEVER
from chartgen.metrics.read.lines import STDIN, find_logs, is_events, read_blocks, split_blocks
from chartgen.metrics.read.readers import FAMILIES
from chartgen.metrics.read.scan import Scanner
from chartgen.metrics.read.track import Track

if TYPE_CHECKING:
    from chartgen.checks.line_patterns import LinePatterns


def read_logs(places: Iterable[str], own: LinePatterns | None = None) -> Log:
    """Read the logs of one run: files, gzip, folders, TensorBoard event files, or `-` for standard input.

    Args:
        places: Paths: the files of several processes, or of successive starts.

    Raises:
        ChartgenError: A log is unreadable, empty, or without training steps.
    """
    return _of_one_run([read_log(place, own) for place in find_logs(places)])


def read_streams(streams: Iterable[tuple[str, Iterable[bytes]]], own: LinePatterns | None = None) -> Log:
    """Read logs that are not files, such as those of pods.

    Args:
        streams: Name of each, and its text in pieces of any size.

    Raises:
        ChartgenError: None contains a training step.
    """
    return _of_one_run([_read(name, split_blocks(pieces, name), own) for name, pieces in streams])


def _of_one_run(logs: list[Log]) -> Log:
    return join([log for log in logs if len(log.track)] or logs)


def read_log(place: str, own: LinePatterns | None = None) -> Log:
    """Read one file, or standard input, as `read_logs` does."""
    if place != STDIN and is_events(place):
        from chartgen.metrics.read.readers import tensorboard

        collector = Collector()
        with Path(place).open("rb") as stream:
            collector.take(("tensorboard", b"", event) for event in tensorboard.read_event_file(stream, place))
        log = collector.log(place)
        log.size = Path(place).stat().st_size
        return log
    return _read(place, read_blocks(place), own)


def _read(name: str, blocks: Iterable[bytes], own: LinePatterns | None) -> Log:
    collector, scanner = Collector(), Scanner(own)
    for events in scanner.scan(blocks):
        collector.take(events)
    return collector.log(name, scanner)


def join(logs: list[Log]) -> Log:
    """Join the logs of one run: use one of several parallel ranks, and append later starts to earlier ones.

    Raises:
        ChartgenError: None of them contains a step or the table of a network test.
    """
    if not len(logs[0].track):
        return _of_tests(logs)
    ordered = sorted(logs, key=lambda log: (_first(log.track.when), log.track.numbers[0]))
    whole = ordered[0]
    for log in ordered[1:]:
        whole.checkpoints += log.checkpoints
        whole.remarks += [text for text in log.remarks if text not in whole.remarks]
        if _is_copy(log, whole):
            continue
        other = _is_other(log, whole)
        if log.fresh or other or _follows(log.track, whole.track):
            before = len(whole.sections)
            whole.parts += [(begin + len(whole.track), place) for begin, place in log.parts]
            whole.track.extend(log.track, before)
            whole.sections += log.sections
            whole.marks += [mark._replace(section=mark.section + before) for mark in log.marks]
            own = log.fresh | ({next(iter(log.track.attempts())).section} if other else set())
            whole.fresh |= {section + before for section in own}
            whole.starts |= {section + before: when for section, when in log.starts.items()}
        elif worth(log.track) < worth(whole.track):
            whole.track, whole.sections, whole.parts = log.track, log.sections, log.parts
    whole.begun = min((log.begun for log in logs if not isnan(log.begun)), default=NEVER)
    whole.ended = max((log.ended for log in logs if not isnan(log.ended)), default=NEVER)
    whole.places = tuple(place for log in logs for place in log.places)
    whole.size = sum(log.size for log in logs)
    whole.broken = sum(log.broken for log in logs)
    whole.bandwidths = [row for log in logs for row in log.bandwidths]
    return whole


def _is_copy(log: Log, whole: Log) -> bool:
    """Report whether a log is a copy of an earlier one with another name."""
    return bool(log.fresh) and [mark[:3] for mark in log.marks] == [mark[:3] for mark in whole.marks[-len(log.marks) :]]


def _is_other(log: Log, whole: Log) -> bool:
    """Report whether the configuration of a log contradicts the last one: it is of another run, not of a rank."""
    own, last = (next((each for each in reversed(sections) if each), {}) for sections in (log.sections, whole.sections))
    return any(own[key] != last[key] for key in own.keys() & last.keys())


def _follows(later_one: Track, earlier: Track) -> bool:
    """Report whether a log belongs to a later start; without times, whether it begins at a later step."""
    begin, end = _first(later_one.when), last_of(earlier.when)
    if isfinite(begin) and not isnan(end):
        return begin >= end
    return later_one.numbers[0] > earlier.numbers[0]


def _of_tests(logs: list[Log]) -> Log:
    tested = [log for log in logs if log.bandwidths]
    if not tested:
        raise _nothing(logs)
    tested[0].bandwidths = [row for log in tested for row in log.bandwidths]
    return tested[0]


def _nothing(logs: list[Log]) -> ChartgenError:
    size = sum(log.size for log in logs)
    names = ", ".join(place for log in logs for place in log.places[:1])
    if not size:
        return ChartgenError(Problem("is empty", names, hint="has the program started? see `kubectl get pods`"))
    known = ", ".join(list(FAMILIES.values())[1:-1])
    problem = f"has no training steps in {size:,} bytes"
    return ChartgenError(Problem(problem, names, hint=f"known are logs of {known}; is it the right rank's?"))


def _first(times: array[float]) -> float:
    return next(filterfalse(isnan, times), inf)
