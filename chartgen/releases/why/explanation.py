"""The verdict on a run that ended or hangs: the first cause, where it happened, and what shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chartgen.errors import ChartgenError, Problem, UsageError
from chartgen.files import files_in, refuse_pipe
from chartgen.releases.why.causes import LEVELS, Cause, cause_table
from chartgen.releases.why.flight_recorder import Stuck, find_stuck, rank_of_dump, read_dump
from chartgen.releases.why.run_log import Clue, RunLog, TimedOut, read_file, read_run_log
from chartgen.visible import counted

_SHOWN = 5  # lines of evidence
_WAITS = {"collective-timeout", "no-step"}  # which a rank causes that may be found
_LATE = float("inf")
# Ranks say so when the first of them ends, also as planned: torch 2.9, torch/csrc/distributed/c10d/TCPStore.cpp.
_STORE_ENDED = re.compile(r"\bTCPStore\b|\braised from (?:recv|send)Bytes")


@dataclass(frozen=True)
class EvidenceLine:
    """A line that shows a cause: its file or pod with the line's number, and its text."""

    place: str
    text: str


@dataclass(frozen=True)
class Explanation:
    """Why a run ended."""

    cause: str  # id of the cause, of chartgen/releases/why/causes.yaml; unknown
    what: str  # the cause in one clause
    rank: int | None = None  # rank that failed first, or that the others waited for; None when unknown
    machine: str = ""  # its machine; empty when unknown. Only `restart` elsewhere blames it.
    collective: str = ""  # the collective in which the others waited
    evidence: tuple[EvidenceLine, ...] = ()  # what shows the cause; of a release, also the images of its pods
    hint: str = ""  # what to do
    # `same` = another try may succeed, `elsewhere` = not on this machine, `none` = every try fails alike
    restart: str = "same"
    examined: tuple[str, ...] = ()  # what was read


def explain_files(places: Iterable[Path]) -> Explanation:
    """Return why a run ended, from logs and dumps; UsageError: a file is missing. ChartgenError: it is unreadable."""
    logs: list[RunLog] = []
    dumps: dict[int, dict[str, Any]] = {}
    names: dict[int, str] = {}
    unread: list[str] = []
    named = list(places)
    for path in (each for place in named for each in _files(place)):
        try:
            rank = rank_of_dump(path)
            dump = None if rank is None else read_dump(path)
            if rank is None or dump is None:
                logs.append(read_file(path))
            else:
                dumps[rank], names[rank] = dump, path.name
        except ChartgenError as error:
            if path in named:
                raise
            unread.append(f"{path.name}: {error.problems[0].message}")
    examined = [*(f"{names[rank]}: a dump of rank {rank}" for rank in sorted(dumps)), *unread]
    return explain(logs, find_stuck(dumps, names), examined=examined)


def explain_lines(logs: Mapping[str, Iterable[str]]) -> tuple[str, float | None]:
    """Return the cause that lines of several logs show, and when the first line of any was written; None = unknown."""
    read = [read_run_log(name, lines) for name, lines in logs.items()]
    times = [clue.when for log in read for clue in log.clues if clue.when is not None]
    return explain(read).cause, min(times, default=None)


def _files(place: Path) -> list[Path]:
    if not place.exists():
        raise UsageError(Problem("no such file", place, hint="check the path"))
    refuse_pipe(place)
    if not place.is_dir():
        return [place]
    if found := files_in(place):
        return found
    raise UsageError(Problem("contains no files", place, hint="name logs, also those that links there name"))


def explain(logs: Sequence[RunLog], stuck: Stuck | None = None, *, examined: Sequence[str] = ()) -> Explanation:
    """Return why a run ended.

    Args:
        stuck: What its Flight Recorder dumps show.
    """
    read = (
        *(f"{log.name}: {counted(log.lines, 'line')}{log.unread and f', {log.unread}'}" for log in logs),
        *examined,
    )
    clues = sorted((clue for log in logs for clue in log.clues), key=_order)
    if any(log.is_done for log in logs):
        clues = [clue for clue in clues if clue.cause.level != "echo" or not _STORE_ENDED.search(clue.text)]
    first = clues[0] if clues else None
    if first is None or first.cause.level == "echo" or first.cause.name in _WAITS:
        waited = stuck or _from_timeouts(logs)
        hung = _explain_hang(logs, waited, first, read) if waited or any(log.stacks for log in logs) else None
        if hung:
            return hung
    if first is None:
        return Explanation("unknown", "no line of the logs names a known cause", hint=_MORE, examined=read)
    same = [clue for clue in clues if clue.cause == first.cause]
    if first.cause.name in _WAITS:  # each rank that waits reports it
        return _explanation(first.cause, first.text, None, "", same, read)
    machine = first.machine or _machine_of(first.rank, logs)
    return _explanation(first.cause, first.text, first.rank, machine, same, read)


_MORE = "name the logs of all ranks and the kernel's log of each machine; Flight Recorder dumps count too"


def _order(clue: Clue) -> tuple[int, float]:
    return LEVELS.index(clue.cause.level), _LATE if clue.when is None else clue.when


def _explanation(
    cause: Cause,
    text: str,
    rank: int | None,
    machine: str,
    clues: Sequence[Clue],
    read: tuple[str, ...],
    collective: str = "",
) -> Explanation:
    evidence = tuple(EvidenceLine(clue.place, clue.text) for clue in clues[:_SHOWN])
    what = text if cause.name == "exception" else cause.what
    return Explanation(cause.name, what, rank, machine, collective, evidence, cause.hint, cause.restart, read)


def _explain_hang(
    logs: Sequence[RunLog], stuck: Stuck | None, first: Clue | None, read: tuple[str, ...]
) -> Explanation | None:
    """Return what the ranks waited for: by their collectives, and by the stack of the rank that differs."""
    table = cause_table()
    rank = stuck.ranks[0] if stuck and len(stuck.ranks) == 1 else _odd_rank(logs)
    stacks = [log.stacks[rank] for log in logs if rank in log.stacks] if rank is not None else []
    place, frames = stacks[0] if stacks else ("", [])
    own = next((row for row in table.stacks if row.pattern and any(map(row.pattern.search, frames))), None)
    cause = table.named(stuck.kind) if stuck else own
    if stuck and stuck.kind == "not-joined" and own:
        cause = own
    if cause is None:
        return None
    clues = [] if first is None else [first]
    if stuck:
        text = stuck.collective + (f"; rank {rank} called {stuck.others}" if stuck.others else "")
        clues = [Clue(cause, stuck.place, text), *clues]
    clues += [Clue(cause, place, frame) for frame in frames]
    blamed = rank if cause.name != "collective-timeout" else None
    return _explanation(cause, "", blamed, _machine_of(blamed, logs), clues, read, stuck.collective if stuck else "")


def _odd_rank(logs: Sequence[RunLog]) -> int | None:
    """Return the one rank that is not in a collective, where all others are."""
    stacks = {rank: frames for log in logs for rank, (_, frames) in log.stacks.items() if rank >= 0}
    outside = [rank for rank, frames in stacks.items() if not any(map(cause_table().collectives.search, frames))]
    return outside[0] if len(outside) == 1 else None


def _from_timeouts(logs: Sequence[RunLog]) -> Stuck | None:
    """Return the collective that did not end, and the rank that differs, from messages of NCCL's watchdog."""
    timeouts = {rank: each for log in reversed(logs) for rank, each in reversed(log.timeouts.items())}
    enqueued = {rank: found for log in logs for rank, found in log.enqueued.items()}
    if not timeouts:
        return None
    sequence = min(each.sequence for each in timeouts.values())
    waiting = {rank: each for rank, each in timeouts.items() if each.sequence == sequence}
    calls: dict[tuple[str, str], list[int]] = {}
    for rank, each in waiting.items():
        calls.setdefault((each.operation, each.elements), []).append(rank)
    usual, *others = sorted(calls.values(), key=len, reverse=True)
    one = waiting[usual[0]]
    group = next((enqueued[rank][0] for rank in waiting if rank in enqueued), "")
    what = f"{one.operation} {sequence}" + (f" of group {group}" if group else "")
    if others:
        other, differs = waiting[others[-1][0]], len(others[-1]) < len(usual)
        odd, place = (tuple(others[-1]), other.place) if differs else ((), one.place)
        return Stuck("diverged", what, odd, other.operation, place)
    behind = tuple(sorted(rank for rank, (name, last) in enqueued.items() if last < sequence and name == group))
    behind = behind or _silent(logs, timeouts)
    return Stuck("not-joined" if behind else "collective-timeout", what, behind, place=one.place)


def _silent(logs: Sequence[RunLog], timeouts: dict[int, TimedOut]) -> tuple[int, ...]:
    """Return the ranks that wrote lines, but none about a collective that did not end."""
    known = {rank for log in logs for rank in (*log.seen, *log.ranks)}
    silent = tuple(sorted(known - set(timeouts)))
    return silent if len(silent) * 2 < len(known) else ()


def _machine_of(rank: int | None, logs: Sequence[RunLog]) -> str:
    """Return the machine of a rank, by the log that contains its lines."""
    return next((log.machine for log in logs if rank is not None and (rank in log.seen or rank in log.ranks)), "")


_TRIES = {
    "same": "another try may succeed",
    "elsewhere": "another try may succeed, on other machines",
    "none": "another try ends in the same way",
}
_MOST = 20  # files that are listed when the cause is unknown


def describe_explanation(found: Explanation) -> Iterator[str]:
    """Yield an explanation as lines."""
    yield f"{found.cause}: {found.what}"
    where = [f"rank {found.rank}"] if found.rank is not None else []
    where += [f"machine {found.machine}"] if found.machine else []
    if where:
        yield f"  where       {' on '.join(where)}"
    if found.collective:
        yield f"  collective  {found.collective}"
    for each in found.evidence:
        yield f"  {each.place}: {each.text}"
    if found.cause == "unknown":
        for name in found.examined[:_MOST]:
            yield f"  examined    {name}"
        if len(found.examined) > _MOST:
            yield f"  examined    {len(found.examined) - _MOST} more"
    else:
        yield f"  then        {_TRIES[found.restart]}"
    yield f"  what to do: {found.hint}"
