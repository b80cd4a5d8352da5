"""The data of a run's logs, collected event by event."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import filterfalse
from math import isfinite, isnan
from typing import TYPE_CHECKING

from chartgen.metrics.read.events import NEVER, Checkpoint, Event, Mark, Remark, Setting, Start, Step, Steps, Timings
from chartgen.metrics.read.readers import FAMILIES
from chartgen.metrics.read.scan import Scanner
from chartgen.metrics.read.track import Track

if TYPE_CHECKING:
    from chartgen.metrics.read.readers.nccl import Bandwidth

# Their times are seconds of an epoch, whatever the time zone of other lines, such as the first one and checkpoints.
EPOCH = ("dllogger", "mlperf", "tensorboard")
_ORDER = tuple(FAMILIES)


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


class Collector:
    """Collects the events of one log, with a separate track for each process."""

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
        self._ended = self._saved = NEVER

    def take(self, events: Iterable[tuple[str, bytes, Event]]) -> None:
        """Take events in the order of the log."""
        tracks, section = self._tracks, len(self.sections) - 1
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
                section = len(self.sections) - 1

    def _other(self, family: str, rank: bytes, event: Event) -> None:
        if isinstance(event, Setting):
            self.sections[-1][event.name] = event.value
        elif isinstance(event, Start):
            self._start(family, event)
        elif isinstance(event, Checkpoint):
            self.checkpoints.append(event._replace(section=len(self.sections) - 1))
            self._saved = later(self._saved, event.when)
        elif isinstance(event, Mark):
            self._mark(event, rank)
        elif isinstance(event, Remark):
            self.remarks[event] = self.remarks.get(event, 0) + 1
        elif isinstance(event, Timings):
            # a list contains the whole run, so the last one of a log counts
            track = self._tracks["list", rank] = Track("list")
            for number, seconds in enumerate(event.seconds, 1):
                track.add(Step(number, NEVER, {"seconds": seconds}))

    def _start(self, family: str, start: Start) -> None:
        if self._stepped:
            self.sections.append({})
            self._stepped = False
        if start.fresh:
            self.fresh.add(len(self.sections) - 1)
        if family in EPOCH:
            self.begun = start.when if not self.begun <= start.when else self.begun
            self.starts.setdefault(len(self.sections) - 1, start.when)

    def _mark(self, mark: Mark, rank: bytes) -> None:
        if mark.kind in ("run_start", "run_stop", "eval"):
            # several ranks log the same event, so only one of them counts
            self._marking = rank if self._marking is None else self._marking
            if rank != self._marking:
                return
        if mark.kind == "run_start":
            # it never continues an earlier run
            if len(self.sections) - 1 in self.fresh:
                self.sections.append({})
                self._stepped = False
            self.fresh.add(len(self.sections) - 1)
        elif mark.kind == "run_stop":
            self._stepped = True
        self.marks.append(mark._replace(section=len(self.sections) - 1))
        self._ended = later(self._ended, mark.when)

    def _evaluated(self) -> Track:
        """Return the evaluated steps, for a log that contains only evaluations; their ordinals if steps are unknown."""
        track, counts = Track("mlperf"), dict[int, int]()
        marks = [mark for mark in self.marks if mark.kind == "eval"]
        known = all(mark.step >= 0 for mark in marks)
        for mark in marks:
            number = counts[mark.section] = counts.get(mark.section, 0) + 1
            step = Step(
                mark.step if known else number, mark.when, {} if isnan(mark.samples) else {"samples": mark.samples}
            )
            if self._goes_on(track, step, mark.section):
                track.add(step, mark.section)
        return track

    @staticmethod
    def _goes_on(track: Track, step: Step, section: int) -> bool:
        """Report whether an evaluation follows the previous one: some benchmarks count in other units."""
        last = [*track.attempts()][-1:] if len(track) else []
        return not last or last[0].section != section or step.number > track.numbers[-1]

    def _doubt(self, track: Track) -> None:
        """Remove the columns with at least as many contrary remarks as values."""
        for remark, count in self.remarks.items():
            column = track.columns.get(remark.against)
            if column is not None and sum(map(isfinite, column)) <= count:
                del track.columns[remark.against]

    def log(self, place: str, scanner: Scanner | None = None) -> Log:
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
        log = Log(track, place)
        log.sections, log.checkpoints, log.marks, log.begun = self.sections, self.checkpoints, self.marks, self.begun
        log.fresh, log.starts, log.remarks = self.fresh, self.starts, [remark.text for remark in self.remarks]
        log.ended = later(self._ended, last_of(track.when))
        if track.family not in EPOCH:
            log.ended = later(log.ended, self._saved)
        if scanner is not None:
            log.begun = self.begun if track.family in EPOCH else scanner.begun
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
