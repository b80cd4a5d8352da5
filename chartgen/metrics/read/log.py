"""A run as its logs tell it: steps in the order of the run, checkpoints, configurations, and when it all was."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import filterfalse
from math import inf, isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING

from chartgen.errors import ChartgenError, Problem
from chartgen.metrics.read.events import NEVER, Checkpoint, Event, Mark, Remark, Setting, Start, Step, Steps, Timings
from chartgen.metrics.read.lines import STDIN, find_logs, is_events, read_blocks, split_blocks
from chartgen.metrics.read.readers import FAMILIES
from chartgen.metrics.read.scan import Scanner
from chartgen.metrics.read.track import Track

if TYPE_CHECKING:
    from chartgen.metrics.read.readers.nccl import Bandwidth

# Their times are seconds of an epoch, whatever zone the first lines of the log are written in.
_EPOCH = ("dllogger", "mlperf", "tensorboard")
_ORDER = tuple(FAMILIES)


class Log:
    """What the logs of a run tell.

    Args:
        track: Its steps.
        place: The file.
    """

    def __init__(self, track: Track, place: str) -> None:
        self.track = track
        self.places: tuple[str, ...] = (place,)
        #: The settings of each configuration that was printed, first to last.
        self.sections: list[dict[str, str]] = [{}]
        #: Signs of checkpoints, of all ranks.
        self.checkpoints: list[Checkpoint] = []
        #: Starts, ends and scores.
        self.marks: list[Mark] = []
        #: Configurations that a new run began with, whatever came before; when each began, where that is told.
        self.fresh: set[int] = set()
        self.starts: dict[int, float] = {}
        #: What the readers have to say, each once.
        self.remarks: list[str] = []
        #: When the first line was written, and the last step or checkpoint was; nan = not told.
        self.begun = self.ended = NEVER
        #: Bytes, uncompressed.
        self.size = 0
        #: Lines that look like known ones but cannot be read, and the first of them.
        self.broken = 0
        self.first_broken = ""
        #: What tests of the network measured.
        self.bandwidths: list[Bandwidth] = []


class Collector:
    """Gathers the events of one log; the tracks of its processes stay apart."""

    def __init__(self) -> None:
        self.sections: list[dict[str, str]] = [{}]
        self.checkpoints: list[Checkpoint] = []
        self.marks: list[Mark] = []
        self.fresh: set[int] = set()
        self.starts: dict[int, float] = {}
        self.remarks: dict[Remark, int] = {}
        self.begun = NEVER
        self._tracks: dict[tuple[str, bytes], Track] = {}
        self._marking: bytes | None = None
        self._stepped = False
        self._ended = NEVER

    def take(self, events: Iterable[tuple[str, bytes, Event]]) -> None:
        """Take events in the order of the log."""
        tracks, section = self._tracks, len(self.sections) - 1
        for family, rank, event in events:
            if isinstance(event, Step | Steps):
                track = tracks.get((family, rank))
                if track is None:
                    track = tracks[family, rank] = Track(family)
                if isinstance(event, Step):
                    track.add(event, section)
                else:
                    track.add_many(event, section)
                self._stepped = True
            else:
                self._other(family, rank, event)
                section = len(self.sections) - 1

    def _other(self, family: str, rank: bytes, event: Event) -> None:
        if isinstance(event, Setting):
            self.sections[-1][event.name] = event.value
        elif isinstance(event, Start):
            self._start(family, event)
        elif isinstance(event, Checkpoint):
            self.checkpoints.append(event._replace(section=len(self.sections) - 1))
            self._ended = later(self._ended, event.when)
        elif isinstance(event, Mark):
            self._mark(event, rank)
        elif isinstance(event, Remark):
            self.remarks[event] = self.remarks.get(event, 0) + 1
        elif isinstance(event, Timings):
            # a list holds the whole run, so the last one of a log counts
            track = self._tracks["list", rank] = Track("list")
            for number, seconds in enumerate(event.seconds, 1):
                track.add(Step(number, NEVER, {"seconds": seconds}))

    def _start(self, family: str, start: Start) -> None:
        if self._stepped:
            self.sections.append({})
            self._stepped = False
        if start.fresh:
            self.fresh.add(len(self.sections) - 1)
        if family in _EPOCH:
            self.begun = start.when if not self.begun <= start.when else self.begun
            self.starts.setdefault(len(self.sections) - 1, start.when)

    def _mark(self, mark: Mark, rank: bytes) -> None:
        if mark.kind in ("run_start", "run_stop", "eval"):
            # of several ranks that tell the same one counts
            self._marking = rank if self._marking is None else self._marking
            if rank != self._marking:
                return
        if mark.kind == "run_start":
            # it never goes on with an earlier one
            if len(self.sections) - 1 in self.fresh:
                self.sections.append({})
                self._stepped = False
            self.fresh.add(len(self.sections) - 1)
        elif mark.kind == "run_stop":
            self._stepped = True
        self.marks.append(mark._replace(section=len(self.sections) - 1))
        self._ended = later(self._ended, mark.when)

    def _evaluated(self) -> Track:
        """Return the steps of a log that tells of evaluations only: those that were evaluated."""
        track = Track("mlperf")
        for mark in self.marks:
            if mark.kind == "eval" and mark.step >= 0 and self._goes_on(track, mark):
                track.add(Step(mark.step, mark.when, {"samples": mark.samples}), mark.section)
        return track

    @staticmethod
    def _goes_on(track: Track, mark: Mark) -> bool:
        """Report whether an evaluation comes after the one before it: some benchmarks count in something else."""
        last = [*track.attempts()][-1:] if len(track) else []
        return not last or last[0].section != mark.section or mark.step > track.numbers[-1]

    def _doubt(self, track: Track) -> None:
        """Take out values of which more lines speak against what they seem to say than for it."""
        for remark, count in self.remarks.items():
            column = track.columns.get(remark.against)
            if column is not None and sum(map(isfinite, column)) <= count:
                del track.columns[remark.against]

    def log(self, place: str, scanner: Scanner | None = None) -> Log:
        """Choose the process whose steps count, and give what the log tells."""
        ordered = sorted(self._tracks.items(), key=lambda item: (-len(item[1]), _ORDER.index(item[0][0]), item[0][1]))
        track = ordered[0][1] if ordered else self._evaluated()
        for (family, _), other in ordered:
            speeds = other.column("tflops")
            if family == "bridge" and speeds and len(other) == len(track):
                track.columns.setdefault("tflops", speeds)
        self._doubt(track)
        log = Log(track, place)
        log.sections, log.checkpoints, log.marks, log.begun = self.sections, self.checkpoints, self.marks, self.begun
        log.fresh, log.starts, log.remarks = self.fresh, self.starts, [remark.text for remark in self.remarks]
        log.ended = later(self._ended, _last(track.when))
        if scanner is not None:
            log.begun = self.begun if track.family in _EPOCH else scanner.begun
            log.size, log.broken, log.first_broken = scanner.size, scanner.broken, scanner.first_broken
            log.bandwidths = scanner.bandwidths
        return log


def read_logs(places: Iterable[str]) -> Log:
    """Read the logs of one run: files, gzip, folders, TensorBoard event files, or `-` for standard input.

    Args:
        places: Paths; the files of several processes, or of one start after the other.

    Raises:
        ChartgenError: A log cannot be read, is empty, or holds no training steps.
    """
    return _of_one_run([read_log(place) for place in find_logs(places)])


def read_streams(streams: Iterable[tuple[str, Iterable[bytes]]]) -> Log:
    """Read logs that are no files, such as those of pods.

    Args:
        streams: Name of each, and its text in pieces of any size.

    Raises:
        ChartgenError: None holds a training step.
    """
    return _of_one_run([_read(name, split_blocks(pieces, name)) for name, pieces in streams])


def _of_one_run(logs: list[Log]) -> Log:
    return join([log for log in logs if len(log.track)] or logs)


def read_log(place: str) -> Log:
    """Read one file, or standard input."""
    if place != STDIN and is_events(place):
        from chartgen.metrics.read.readers import tensorboard

        collector = Collector()
        with Path(place).open("rb") as stream:
            collector.take(("tensorboard", b"", event) for event in tensorboard.read(stream, place))
        log = collector.log(place)
        log.size = Path(place).stat().st_size
        return log
    return _read(place, read_blocks(place))


def _read(name: str, blocks: Iterable[bytes]) -> Log:
    collector, scanner = Collector(), Scanner()
    for events in scanner.scan(blocks):
        collector.take(events)
    return collector.log(name, scanner)


def join(logs: list[Log]) -> Log:
    """Join the logs of one run: of ranks that ran side by side one counts, later starts go behind earlier ones.

    Raises:
        ChartgenError: None of them has a step, or a table of a test of the network.
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
        if log.fresh or _follows(log.track, whole.track):
            before = len(whole.sections)
            whole.track.extend(log.track, before)
            whole.sections += log.sections
            whole.marks += [mark._replace(section=mark.section + before) for mark in log.marks]
            whole.fresh |= {section + before for section in log.fresh}
            whole.starts |= {section + before: when for section, when in log.starts.items()}
        elif len(log.track) > len(whole.track):
            whole.track, whole.sections = log.track, log.sections
    whole.begun = min((log.begun for log in logs if not isnan(log.begun)), default=NEVER)
    whole.ended = max((log.ended for log in logs if not isnan(log.ended)), default=NEVER)
    whole.places = tuple(place for log in logs for place in log.places)
    whole.size = sum(log.size for log in logs)
    whole.broken = sum(log.broken for log in logs)
    whole.bandwidths = [row for log in logs for row in log.bandwidths]
    return whole


def _is_copy(log: Log, whole: Log) -> bool:
    """Report whether a result is one that was read before under another name."""
    return bool(log.fresh) and [mark[:3] for mark in log.marks] == [mark[:3] for mark in whole.marks[-len(log.marks) :]]


def _follows(later_one: Track, earlier: Track) -> bool:
    """Report whether a log is of a later start; without times, whether it begins at a later step."""
    begin, end = _first(later_one.when), _last(earlier.when)
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
    known = ", ".join(list(FAMILIES.values())[:-1])
    problem = f"has no training steps in {size:,} bytes"
    return ChartgenError(Problem(problem, names, hint=f"known are logs of {known}; is it the right rank's?"))


def _first(times: array[float]) -> float:
    return next(filterfalse(isnan, times), inf)


def _last(times: array[float]) -> float:
    return next(filterfalse(isnan, reversed(times)), NEVER)


def later(one: float, other: float) -> float:
    """Return the later of two times; nan counts as not told."""
    return other if isnan(one) else one if isnan(other) else max(one, other)


def kept(track: Track) -> Iterator[range]:
    """Return the indices of the steps that count in the end: those that a later start did again are left out."""
    limit: float = inf
    ranges = []
    for attempt in reversed([*track.attempts()]):
        end = bisect_left(track.numbers, limit, attempt.begin, attempt.end)
        ranges.append(range(attempt.begin, end))
        limit = min(limit, track.numbers[attempt.begin])
    yield from reversed(ranges)
