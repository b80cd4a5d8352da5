"""Why a run started again: the lines of its logs from the last step before a restart to the first one after it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import NamedTuple, TypeAlias

from chartgen.metrics.read.events import NEVER
from chartgen.metrics.read.lines import find_logs, is_events, read_blocks, split_blocks
from chartgen.metrics.read.log import ARCHIVES, Log
from chartgen.metrics.read.prefix import read_time
from chartgen.visible import cut

# Pauses whose cause is looked for, lines of a log in each, the last ones, and bytes of a line: logs may be anybody's.
_PAUSES, _LINES, _BYTES = 50, 2000, 2000


class Pause(NamedTuple):
    """Seconds of an epoch between two starts of a run."""

    begin: float  # of the last step before
    end: float  # of the first step after


Explain: TypeAlias = Callable[[Mapping[str, Sequence[str]]], tuple[str, float | None]]


def name_causes(log: Log, streams: Iterable[tuple[str, Iterable[bytes]]], explain: Explain) -> None:
    """Name the cause of each restart of a log with times.

    Args:
        streams: The logs again, as for `read_streams`, and others of the run.
        explain: Returns the cause that lines of several logs show, and when it was first seen.
    """
    starts = pairwise(log.track.attempts()) if len(log.track) else ()
    pauses = [Pause(log.track.when[before.end - 1], log.track.when[after.begin]) for before, after in starts][:_PAUSES]
    found: dict[Pause, dict[str, deque[str]]] = {each: {} for each in pauses if each.begin < each.end}
    for name, pieces in streams if found else ():
        for pause, line in _lines_within(split_blocks(iter(pieces), name), [*found]):
            found[pause].setdefault(name, deque(maxlen=_LINES)).append(line)
    for pause, lines in found.items():
        log.causes[pause.begin] = explain({name: [*kept] for name, kept in lines.items()})


def _lines_within(blocks: Iterable[bytes], pauses: Sequence[Pause]) -> Iterator[tuple[Pause, str]]:
    """Yield the lines within pauses; one without a time has that of the line before it."""
    now = NEVER
    for block in blocks:
        last = read_time(block, block.rfind(b"\n", 0, -1) + 1, len(block))
        if not isnan(now + last) and not any(pause.begin <= last and now <= pause.end for pause in pauses):
            now = last  # most of a long log
            continue
        for line in block.splitlines():
            when = read_time(line)
            now = now if isnan(when) else when
            yield from (
                (each, cut(line[: _BYTES + 1].decode(errors="replace"), _BYTES))
                for each in pauses
                if each.begin <= now <= each.end
            )


def text_logs(places: Iterable[str]) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the logs at some places that can be read again: no archives, event files or pipes."""
    for place in find_logs(place for place in places if Path(place).exists()):
        if Path(place).is_file() and not (is_events(place) or place.endswith(ARCHIVES)):
            yield place, read_blocks(place)
