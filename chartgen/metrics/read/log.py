"""A run from its logs: steps in the order of the run, checkpoints, configurations, and times."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import filterfalse
from math import inf, isfinite, isnan
from pathlib import Path
from typing import IO, TYPE_CHECKING

from chartgen.errors import ChartgenError, Problem
from chartgen.metrics.read.events import NEVER, Checkpoint, Event, Mark, Remark, Setting, Start, Step, Steps, Timings
from chartgen.metrics.read.lines import BLOCK, STDIN, find_logs, is_events, read_blocks, split_blocks
from chartgen.metrics.read.readers import FAMILIES
from chartgen.metrics.read.scan import Scanner
from chartgen.metrics.read.track import Track
from chartgen.visible import one_line

if TYPE_CHECKING:
    from chartgen.checks.line_patterns import LinePatterns
    from chartgen.metrics.read.readers.nccl import Bandwidth


# Their times are seconds of an epoch, whatever the time zone of other lines, such as the first one and checkpoints.
EPOCH = ("dllogger", "mlperf", "tensorboard")
_ORDER = tuple(FAMILIES)
ARCHIVES = (".tgz", ".tar.gz", ".tar", ".zip")


class Log:
    """The data of a run's logs."""

    def __init__(self, track: Track, place: str) -> None:
        self.track = track
        self.places: tuple[str, ...] = (place,)
        #: Index of the first step that each file added.
        self.parts: list[tuple[int, str]] = [(0, place)]
        #: The settings of each printed configuration, first to last.
        self.sections: list[dict[str, str]] = [{}]
        #: Signs of checkpoints, of all ranks.
        self.checkpoints: list[Checkpoint] = []
        #: Starts, ends and scores.
        self.marks: list[Mark] = []
        #: Configurations that certainly began a new run, and the known start times.
        self.fresh: set[int] = set()
        self.starts: dict[int, float] = {}
        #: The readers' remarks, each once.
        self.remarks: list[str] = []
        #: Times of the first line and of the last step or checkpoint; nan = unknown.
        self.begun = self.ended = NEVER
        #: Uncompressed size in bytes.
        self.size = 0
        #: Number of unreadable lines of a known form, and the first of them.
        self.broken = 0
        self.first_broken = ""
        #: Results of network tests.
        self.bandwidths: list[Bandwidth] = []
        #: Time of the last step before a restart -> its cause, and when it was seen, if `name_causes` found them.
        self.causes: dict[float, tuple[str, float | None]] = {}


class Collector:
    """Collects the events of one log, with a separate track for each process."""

    def __init__(self, place: str) -> None:
        self._log = Log(Track(""), place)
        self._remarks: dict[Remark, int] = {}
        self._tracks: dict[tuple[str, bytes], Track] = {}
        self._marking: tuple[bytes, str] | None = None
        self._stepped = False
        self._ended = self._saved = NEVER

    @property
    def _section(self) -> int:
        return len(self._log.sections) - 1

    def take(self, events: Iterable[tuple[str, bytes, Event]]) -> None:
        """Take events in the order of the log."""
        tracks, section = self._tracks, self._section
        for family, rank, event in events:
            if isinstance(event, Step | Steps):
                # lines of a pipeline's stages may have no rank
                stage = family == "torchtitan" and isinstance(event, Step) and "loss" not in event.values
                source = (family, rank + b" stage" if stage else rank)
                track = tracks.get(source)
                if track is None:
                    track = tracks[source] = Track(family)
                if isinstance(event, Step):
                    track.add(event, section)
                else:
                    track.add_many(event, section)
                self._stepped = True
            else:
                self._other(family, rank, event)
                section = self._section

    def _other(self, family: str, rank: bytes, event: Event) -> None:
        if isinstance(event, Setting):
            self._log.sections[-1][event.name] = event.value
        elif isinstance(event, Start):
            self._start(family, event)
        elif isinstance(event, Checkpoint):
            self._log.checkpoints.append(event._replace(section=self._section))
            self._saved = later(self._saved, event.when)
        elif isinstance(event, Mark):
            self._mark(event, rank, family)
        elif isinstance(event, Remark):
            self._remarks[event] = self._remarks.get(event, 0) + 1
        elif isinstance(event, Timings):
            # a list contains the whole run, so the last one of a log counts
            track = self._tracks["list", rank] = Track("list")
            for number, seconds in enumerate(event.seconds, 1):
                track.add(Step(number, NEVER, {"seconds": seconds}))

    def _start(self, family: str, start: Start) -> None:
        if self._stepped:
            self._log.sections.append({})
            self._stepped = False
        if start.fresh:
            self._log.fresh.add(self._section)
        if family in EPOCH:
            self._log.begun = start.when if not self._log.begun <= start.when else self._log.begun
            self._log.starts.setdefault(self._section, start.when)

    def _mark(self, mark: Mark, rank: bytes, family: str) -> None:
        if mark.kind in ("run_start", "run_stop", "eval"):
            # several ranks log the same event, so only one of them counts
            self._marking = self._marking or (rank, family)
            if rank != self._marking[0]:
                return
        if mark.kind == "run_start":
            # it never continues an earlier run
            if self._section in self._log.fresh:
                self._log.sections.append({})
                self._stepped = False
            self._log.fresh.add(self._section)
        elif mark.kind == "run_stop":
            self._stepped = True
        if mark.kind == "end" and self._log.marks and self._log.marks[-1].kind == "end":
            self._log.marks.pop()  # a bar draws each step
        self._log.marks.append(mark._replace(section=self._section))
        self._ended = later(self._ended, mark.when)

    def _evaluated(self) -> Track:
        """Return the evaluated steps, for a log that contains only evaluations; their ordinals if steps are unknown."""
        track, counts = Track(self._marking[1] if self._marking else ""), dict[int, int]()
        marks = [mark for mark in self._log.marks if mark.kind == "eval"]
        known = all(mark.step >= 0 for mark in marks)
        for mark in marks:
            number = counts[mark.section] = counts.get(mark.section, 0) + 1
            samples = {} if isnan(mark.samples) else {"samples": mark.samples}
            step = Step(mark.step if known else number, mark.when, samples)
            # some benchmarks count in other units, and an evaluation follows the previous one
            known_section = len(track) and [*track.attempts()][-1].section == mark.section
            if not known_section or step.number > track.numbers[-1]:
                track.add(step, mark.section)
        return track

    def _doubt(self, track: Track) -> None:
        """Remove the columns with at least as many contrary remarks as values."""
        for remark, count in self._remarks.items():
            column = track.columns.get(remark.against)
            if column is not None and sum(map(isfinite, column)) <= count:
                del track.columns[remark.against]

    def finish(self, scanner: Scanner | None = None) -> Log:
        """Choose the process whose steps count, and return the data of the log."""
        # a report of memory alone is no step
        tracks = [item for item in self._tracks.items() if item[1].columns.keys() - {"memory"}]
        ordered = sorted(tracks, key=lambda item: (*worth(item[1]), _ORDER.index(item[0][0]), item[0][1]))
        track = ordered[0][1] if ordered else self._evaluated()
        for (family, _), other in ordered:
            speeds = other.column("tflops")
            if family == "bridge" and speeds and len(other) == len(track):
                track.columns.setdefault("tflops", speeds)
        self._doubt(track)
        if track.family == "mlperf" and not {"seconds", "loss"} & track.columns.keys():
            track = max(track, self._evaluated(), key=len)
        log = self._log
        log.track, log.remarks = track, [*dict.fromkeys(remark.text for remark in self._remarks)]
        log.ended = later(self._ended, last_of(track.when))
        if track.family not in EPOCH:
            log.ended = later(log.ended, self._saved)
        if scanner is not None:
            log.begun = log.begun if track.family in EPOCH else scanner.begun
            log.size, log.broken, log.first_broken = scanner.size, scanner.broken, scanner.first_broken
            log.bandwidths = scanner.bandwidths
        return log


def worth(track: Track) -> tuple[bool, int]:
    """Return the order in which processes count: those that know the loss, and those with more steps first."""
    return track.family == "torchtitan" and "loss" not in track.columns, -len(track)


def last_of(times: array[float]) -> float:
    """Return the last known time; nan when none is known."""
    return next(filterfalse(isnan, reversed(times)), NEVER)


def later(one: float, other: float) -> float:
    """Return the later of two times; nan counts as unknown."""
    return other if isnan(one) else one if isnan(other) else max(one, other)


def read_logs(places: Iterable[str], own: LinePatterns | None = None) -> Log:
    """Read the logs of one run: files, gzip, folders, archives, TensorBoard event files, or `-` for standard input.

    Args:
        places: Paths: the files of several processes, or of successive starts.

    Raises:
        ChartgenError: A log is unreadable, or all of a folder are, or it is empty or without training steps.
    """
    logs, named, unread = list[Log](), list(places), list[Problem]()
    for place in find_logs(named):
        try:
            logs += [*_logs_at(place, own)]
        except ChartgenError as error:
            if place in named:
                raise
            unread += error.problems
    if not logs:
        raise ChartgenError(unread)
    whole = _of_one_run(logs)
    whole.remarks += [f"{problem}; its steps are left out" for problem in unread]
    return whole


def _logs_at(place: str, own: LinePatterns | None) -> Iterator[Log]:
    """Yield the logs of a file: several of an archive."""
    if place == STDIN or not (is_events(place) or place.endswith(ARCHIVES)):
        yield _read(place, read_blocks(place), own)
        return
    if not place.endswith(ARCHIVES):
        with Path(place).open("rb") as events:
            yield _read_stream(place, events, own)
        return
    from chartgen.metrics.read.archives import DAMAGED, read_members

    try:
        with Path(place).open("rb") as archive:
            for path, stream in read_members(place, archive):
                yield _read_stream(f"{place}:{one_line(path)}", stream, own)
    except (OSError, EOFError, *DAMAGED) as error:
        raise ChartgenError(Problem(f"cannot be read: {str(error).rstrip('.') or 'it is damaged'}", place)) from None


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


def _read_stream(name: str, stream: IO[bytes], own: LinePatterns | None) -> Log:
    if not is_events(name):
        return _read(name, split_blocks(iter(partial(stream.read, BLOCK), b""), name), own)
    from chartgen.metrics.read.readers import tensorboard

    collector = Collector(name)
    collector.take(("tensorboard", b"", event) for event in tensorboard.read_event_file(stream, name))
    log = collector.finish()
    log.size = stream.tell()
    return log


def _read(name: str, blocks: Iterable[bytes], own: LinePatterns | None) -> Log:
    collector, scanner = Collector(name), Scanner(own)
    for events in scanner.scan(blocks):
        collector.take(events)
    return collector.finish(scanner)


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
    known = f"known are logs of {', '.join(list(FAMILIES.values())[1:-1])}; is it the right rank's?"
    hint = next((remark for log in logs for remark in log.remarks), known)
    return ChartgenError(Problem(f"has no training steps in {size:,} bytes", names, hint=hint))


def _first(times: array[float]) -> float:
    return next(filterfalse(isnan, times), inf)
