"""Logs of a run as evidence: the lines that name a cause, the ends of ranks, collectives and stacks."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from chartgen.errors import ChartgenError, Problem
from chartgen.releases.why.causes import LEVELS, Cause, cause_table
from chartgen.visible import cut

LONGEST = 1024  # compared characters of a line: of a hostile one, some patterns take quadratic time
_LONGEST_READ = 1 << 20  # bytes; the rest of a longer line counts as another
_MOST_LINES = 5_000_000  # of one log
_END = 64_000_000  # bytes of a file that are read, the last ones: causes are at its end
_MOST_BYTES = 1 << 32  # of one log, unpacked
_MOST_RANKS = 1 << 16  # a larger number is no rank
_LONGEST_CALL = 256  # characters of a stack's line
_MOST_CLUES = 1000  # of one log
_GZIP = b"\x1f\x8b"
# What a line begins with: the time of `kubectl logs --timestamps`, `--prefix`, ranks of torchrun --tee, PyTorch and
# mpirun --tag-output, as in status/ranks.py and metrics/read/prefix.py; Ray (driver's log) names the rank in brackets;
# srun --label the task, which may be that of a machine, and pdsh (DeepSpeed) the host, here one that ends with a digit.
_PREFIX = re.compile(
    r"(?:(?P<time>\d{4}-\d\d-\d\dT[\d:.]+)(?:Z|[+-]\d\d:\d\d) |\[pod/(?P<pod>[^\]/]+)[^\]]*\] ?"
    r"|(?:[\w.-]+/\d+ )?\[(?P<role>default|rank)(?P<number>\d+)\]: ?|\[(?:[^\]\s]*@)?\d+,(?P<mpi>\d+)\]<\w+>: ?"
    r"|\(\w+\[rank=(?P<ray>\d+)\][^)]*\) |(?P<label> {0,6}(?:[\w.-]{0,252}\d|localhost): ))"
)
# Times in a line: of Python's logging and torchrun's report, and of glog, which leaves out the year.
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[ T_](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?"
    r"|[EWIF](\d\d?)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{1,6})"
)
_WITHIN = 80  # characters in which a time is searched
_HOST = re.compile(
    r"^(?:\[[^\]]*\] ?)?([\w.-]+):\d+:\d+ \[\d+\] (?:\S+:\d+ )?NCCL |^\w{3} +\d+ [\d:]{8} ([\w.-]+) kernel: "
)
# A step: as in library/workloads/common/files/watch.py.
_STEP = re.compile(
    r"(?i)^(?!.*(?:checkpoint|\bsav(?:e|ed|ing)\b|\bload(?:ed|ing)?\b))"
    r".*(?:\b(?:iteration|(?:global_?)?steps?)\b\W{1,8}\d|\b\d+/\d+ \[\d)"
)
# Megatron-LM's first and last line of training, megatron/training/training.py; torchtitan's, torchtitan/train.py.
_TRAINING = re.compile(
    r"\[(?:before the start of training step|(after training is done))\]|^.{0,80}Training (completed|starts at step \d)"
)
# Python's report of an exception that ends nothing, such as in a destructor; its last line begins the text again.
_IGNORED = re.compile(r"^Exception ignored (?:in|while)\b")
_WITHIN_TRACEBACK = re.compile(r"^(?:\s|Traceback \(most recent|$)")
_COLOUR = re.compile(r"\x1b\[[\d;]{0,20}m")  # torchtitan's own lines have them
_LABELLED = 10  # lines with a label, after which those before the first are the job script's, not the program's
_SURVIVED = 3  # steps after which a line was not the end: other ranks may print one that they had begun
# torch 2.8, torch/distributed/elastic/multiprocessing/errors: five lines for each failure.
_REPORT = "Root Cause (first observed failure):"
_FIELD = re.compile(r"^\s+(time|host|rank|exitcode)\s*: (\S+)")
# torch 2.1 to 2.9, ProcessGroupNCCL.cpp.
_TIMEOUT = re.compile(r"WorkNCCL\(SeqNum=(\d+), OpType=(\w+)(?:, NumelIn=(\d+))?")
_STATUS = re.compile(
    r"\[PG (?:ID )?(\S+)(?: PG GUID \S*?)? ?(?:\(([^)]*)\))? Rank (\d+)\].*[Ll]ast enqueued (?:NCCL )?work: (-?\d+)"
)
_RANK = re.compile(r"\b[Rr]ank[ =](\d+)\b")
# Python's faulthandler and py-spy dump.
_STACK = re.compile(r'^(?:Current thread 0x|Thread 0x\w+ .*most recent call first|Thread .*"MainThread")')
_FRAME = re.compile(r'^\s+(?:File "([^"]+)", line (\d+) in (\S+)|(\S+) \(([^():]+):(\d+)\))')
_INNERMOST = 16
# The last line of a black box (library/workloads/common/files/watch.py), and its name.
_BOX = re.compile(r"^blackbox: (\S+) (?:rank|machine) \d+ ended with exit code (\d+)")
_BOX_NAME = re.compile(r"\brank-(\d+)\.log(?:\.gz)?$")


@dataclass(frozen=True)
class Clue:
    """A line that names a cause."""

    cause: Cause
    place: str  # file and line, or pod and line
    text: str
    rank: int | None = None  # the rank that wrote it, or that it names; None when unknown
    machine: str = ""  # its machine; empty when unknown
    when: float | None = None  # seconds since 1970; None without a time


@dataclass(frozen=True)
class TimedOut:
    """A collective that did not end in time on one rank."""

    place: str
    sequence: int
    operation: str
    elements: str


@dataclass
class RunLog:
    """What one log contributes."""

    name: str  # its file or pod, or the part of it that is read, in which lines are counted
    machine: str = ""  # its machine; empty while it is unknown
    ranks: range = range(0)  # global ranks whose output it contains; empty when unknown
    lines: int = 0
    unread: str = ""  # why it could not be read to its end
    is_done: bool = False  # whether it says that training ended as planned
    clues: list[Clue] = field(default_factory=list)  # lines that name a cause
    timeouts: dict[int, TimedOut] = field(default_factory=dict)  # rank -> the first collective that did not end
    enqueued: dict[int, tuple[str, int]] = field(default_factory=dict)  # rank -> (group, last collective that it began)
    # Rank -> its last stack, innermost call first
    stacks: dict[int, tuple[str, list[str]]] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)


def read_file(path: Path) -> RunLog:
    """Return what the end of a log, gzip and half an archive too, shows; raise ChartgenError if it cannot be read."""
    log = RunLog(path.name)
    return _read_lines(log, _lines_of(path, log))


def _lines_of(path: Path, log: RunLog) -> Iterator[str]:
    try:
        with path.open("rb") as stream, gzip.open(stream) if stream.peek(2)[:2] == _GZIP else stream as source:
            left = _MOST_BYTES
            if path.is_file() and (size := _size(source)) > _END:  # a pipe can be read once
                source.seek(size - _END)
                left = _END
                of = f"the first {_MOST_BYTES / 1e9:.1f} GB of " if size >= _MOST_BYTES and source is not stream else ""
                log.name = f"the last {_END / 1e6:.0f} MB of {of}{log.name}"
            while left > 0 and (line := source.readline(min(left, _LONGEST_READ))):
                left -= len(line)
                yield line.decode("utf-8", "replace")
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return  # its writer was killed
    except OSError as error:
        raise ChartgenError(Problem(f"cannot be read: {error.strerror or error}", path)) from None


def _size(source: Any) -> int:
    """Return the size of a file in bytes: of a packed one, that of its content as far as it can be unpacked."""
    if not isinstance(source, gzip.GzipFile):
        size: int = source.seek(0, io.SEEK_END)
    else:
        with suppress(EOFError, zlib.error, gzip.BadGzipFile):
            while source.tell() < _MOST_BYTES and source.read(_LONGEST_READ):
                pass
        size = source.tell()
    source.seek(0)
    return size


def read_run_log(name: str, lines: Iterable[str], *, machine: str = "", ranks: range = range(0)) -> RunLog:
    """Return what a log contributes to a verdict.

    See `RunLog` for its name, machine and ranks.
    """
    return _read_lines(RunLog(name, machine, ranks), lines)


def _read_lines(log: RunLog, lines: Iterable[str]) -> RunLog:
    if box := _BOX_NAME.search(log.name):
        log.ranks = range(int(box[1]), int(box[1]) + 1)
    reading = _LogReading(log)
    left = _MOST_LINES
    for line in lines:
        for part in line.rstrip("\r\n").split("\r"):
            reading.take(_COLOUR.sub("", cut(part, LONGEST)))
            left -= 1
        log.lines += 1
        if left <= 0:
            break
    return reading.finish()


def ending(log: RunLog, code: int, text: str, when: float | None) -> list[Clue]:
    """Return the cause that the end of a container names: its reason and message before its exit code."""
    text = cut(" ".join(text.split()), LONGEST)
    cause = (None if _BOX.match(text) else cause_table().of_line(text)) or cause_table().of_exit(code)
    rank = log.ranks[0] if len(log.ranks) == 1 else None
    return [Clue(cause, log.name, text, rank, log.machine, when)] if cause else []


class _LogReading:
    """Reads a log line by line."""

    def __init__(self, log: RunLog) -> None:
        self.log = log
        self._table = cause_table()
        self._steps = 0
        self._labels = self._before = 0
        self._when: float | None = None
        self._boxed: float | None = None  # when the black box was written
        self._year = datetime.now(timezone.utc).year
        self._report: dict[str, str] | None = None
        self._frames: list[str] | None = None
        self._is_ignored = False  # whether the lines are a traceback that ends nothing

    def take(self, line: str) -> None:
        rank, text = self._unprefixed(line)
        place = f"{self.log.name}:{self.log.lines + 1}"
        if host := _HOST.match(text):
            self.log.machine = self.log.machine or host[1] or host[2]
        if rank is not None:
            self.log.seen.add(rank)
        if self._stack(rank, text, place):
            return
        if box := _BOX.match(text):
            self._boxed = _seconds(box[1], self._year)
            if len(self.log.clues) < _MOST_CLUES:
                self.log.clues += ending(self.log, int(box[2]), text, self._boxed)
            return
        if training := _TRAINING.search(text):
            self.log.is_done = bool(training[1] or training[2] == "completed")
            if self.log.is_done:
                self._forget()
        self._reported(text, place)
        self._collective(rank, text, place)
        if not self._clue(rank, text, place) and self.log.clues and _STEP.match(text):
            self._steps += 1
            if self._steps >= _SURVIVED:
                self._forget()

    def _forget(self) -> None:
        """Forget the clues: the run went on after them."""
        self.log.clues.clear()
        self._before = 0

    def finish(self) -> RunLog:
        self._end_report()
        self.log.clues = [
            replace(each, machine=each.machine or self.log.machine, when=each.when or self._boxed)
            for each in self.log.clues
        ]
        return self.log

    def _unprefixed(self, line: str) -> tuple[int | None, str]:
        rank: int | None = None
        at, timed = 0, False
        while (match := _PREFIX.match(line, at)) and match.end() > at:
            at = match.end()
            if match["label"]:
                self._label()
            if match["time"]:
                timed, self._when = True, _seconds(match["time"], self._year)
            for found in (match["mpi"], match["ray"], match["number"]):
                if found:
                    first = self.log.ranks[0] if match["role"] == "default" and self.log.ranks else 0
                    rank = _rank(found, first)
        text = line[at:]
        if not timed and (match := _TIME.search(text, 0, _WITHIN)):
            self._year = int(match[1] or self._year)
            self._when = _seconds(match[0], self._year)
        if rank is None and len(self.log.ranks) == 1:
            rank = self.log.ranks[0]
        return rank, text

    def _label(self) -> None:
        self._labels += 1
        if self._labels == 1:
            self._before = len(self.log.clues)
        elif self._labels == _LABELLED:
            del self.log.clues[: self._before]

    def _clue(self, rank: int | None, text: str, place: str) -> bool:
        """Add a line that names a cause; report whether it does."""
        cause = self._table.of_line(text)
        if self._is_ignored and not _WITHIN_TRACEBACK.match(text):
            self._is_ignored = False
            if cause and cause.name == "exception":
                return True
        self._is_ignored = self._is_ignored or bool(_IGNORED.match(text))
        if cause is None or len(self.log.clues) >= _MOST_CLUES:
            return cause is not None
        rank = _named_rank(text) if rank is None else rank
        self._steps = 0
        self.log.clues.append(Clue(cause, place, text.strip(), rank, when=self._when))
        return True

    def _collective(self, rank: int | None, text: str, place: str) -> None:
        if match := _STATUS.search(text):
            rank = _rank(match[3]) if rank is None else rank
            if rank is not None:
                self.log.enqueued[rank] = (match[2] or match[1], int(match[4]))
        elif (match := _TIMEOUT.search(text)) and "Watchdog" in text:
            rank = _named_rank(text) if rank is None else rank
            if rank is not None:
                self.log.timeouts.setdefault(rank, TimedOut(place, int(match[1]), match[2], match[3] or ""))

    def _stack(self, rank: int | None, text: str, place: str) -> bool:
        """Collect the calls of a main thread; report whether the line was one."""
        frame = _FRAME.match(text)
        if frame and self._frames is not None:
            if len(self._frames) < _INNERMOST:
                call = f"{frame[3] or frame[4]} ({frame[1] or frame[5]}:{frame[2] or frame[6]})"
                self._frames.append(call[:_LONGEST_CALL])
            return True
        self._frames = None
        if _STACK.match(text) and not text.startswith("Thread 0x"):
            self._frames = []
            self.log.stacks[-1 if rank is None else rank] = (place, self._frames)
        return False

    def _reported(self, text: str, place: str) -> None:
        if _REPORT in text:
            self._report = {"place": place}
        elif self._report is not None and (match := _FIELD.match(text)):
            self._report[match[1]] = match[2]
            if match[1] == "exitcode":
                self._end_report()

    def _end_report(self) -> None:
        """Add the end of the rank in torchrun's report; its own message above is the better clue."""
        report, self._report = self._report, None
        numbers = [re.fullmatch(r"-?\d{1,9}", (report or {}).get(key, "")) for key in ("rank", "exitcode")]
        if not report or not all(numbers):
            return
        rank, code = (int(number[0]) for number in numbers if number)
        host, when = report.get("host", ""), _seconds(report.get("time", ""), self._year) or self._when
        self.log.machine = self.log.machine or host
        cause = self._table.of_exit(code)
        if cause:
            text = f"rank {rank} ended with exit code {code}"
            self.log.clues.append(Clue(cause, report["place"], text, rank, host, when))
        for at, clue in enumerate(self.log.clues):  # whose lines name no rank
            if clue.rank is None and clue.cause.level in LEVELS[:2]:
                self.log.clues[at] = replace(clue, rank=rank)


def _rank(digits: str, first: int = 0) -> int | None:
    number = int(digits) + first
    return number if number < _MOST_RANKS else None


def _named_rank(text: str) -> int | None:
    match = _RANK.search(text)
    return _rank(match[1]) if match else None


def _seconds(text: str, year: int) -> float | None:
    match = _TIME.match(text)
    if not match:
        return None
    parts = match.groups()
    full = parts[:7] if parts[0] else (str(year), *parts[7:])
    year, month, day, hour, minute, second = map(int, full[:6])
    try:
        when = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    except ValueError:
        return None
    return when.timestamp() + float(f"0.{full[6] or 0}")
