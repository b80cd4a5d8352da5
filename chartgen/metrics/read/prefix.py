"""The prefix of a line: a time, and the process that wrote the line.

kubectl logs --prefix writes `[pod/NAME/CONTAINER] `, --timestamps an RFC 3339 time (which job launchers put in
brackets); torchrun --tee writes `[default0]:`, or its --role, such as `[rank0]:` (docs.pytorch.org,
torch.distributed.elastic.multiprocessing), srun --label and the NeMo launcher `0: ` (slurm.schedmd.com/srun.html),
mpirun --tag-output `[1,0]<stdout>:` (docs.open-mpi.org, mpirun).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from math import isnan
from typing import NamedTuple

from chartgen.metrics.read.events import NEVER

#: A time to the minute, its seconds, and its zone.
CLOCK_TIME = re.compile(rb"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d):(\d\d(?:[.,]\d{1,9})?)(Z|[+-]\d\d:?\d\d)?")
# Recently parsed minutes, since neighbouring lines share them.
_MINUTES: dict[bytes, int] = {}
_KEPT = 1000
_EPOCH = date(1970, 1, 1).toordinal()


def read_time(text: bytes, start: int = 0, end: int = 64) -> float:
    """Return the first time in a part of a line; nan without one."""
    match = CLOCK_TIME.search(text, start, end)
    if match is None:
        return NEVER
    minute, seconds, zone = match.groups()
    try:
        whole = minute_of(minute) + float(seconds.replace(b",", b"."))
    except ValueError:
        return NEVER  # not a valid time
    return whole - _offset(zone) if zone else whole


def minute_of(text: bytes) -> int:
    """Return the first second of a minute such as 2026-02-06 20:55; raise ValueError for an invalid one."""
    found = _MINUTES.get(text)
    if found is None:
        if len(_MINUTES) >= _KEPT:
            _MINUTES.clear()
        days = date.fromisoformat(text[:10].decode()).toordinal() - _EPOCH
        found = _MINUTES[text] = days * 86400 + int(text[11:13]) * 3600 + int(text[14:16]) * 60
    return found


def epoch_seconds(minutes: Sequence[bytes], seconds: Sequence[bytes]) -> list[float]:
    """Convert minutes such as 2026-02-06 20:55, with seconds, to seconds of an epoch; ValueError: invalid ones."""
    begun = {minute: minute_of(minute) for minute in set(minutes)}
    return [begun[minute] + float(second) for minute, second in zip(minutes, seconds, strict=True)]


def _offset(zone: bytes) -> int:
    if zone == b"Z":
        return 0
    size = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return -size if zone.startswith(b"-") else size


_PREFIX = re.compile(
    rb"(?P<time>\[?\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)\]? )"
    rb"|(?P<pod>\[pod/[^\]]+\] ?)"
    rb"|(?P<rank>[\w/.-]* ?\[(?:default|rank)\d+\]: ?|\[\d+,\d+\]<\w+>: ?|\d+: )"
)
# Controllers give each new pod of an index five new characters; it is the same rank, started again.
_RANDOM = rb"(\[pod/[^/\]]+)-[a-z0-9]{5}(/|\])"
_STARTS = frozenset(b"[0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Prefix(NamedTuple):
    """The prefix of a line."""

    when: float  # time of the line; nan = the prefix has no time
    rank: bytes  # the process that wrote the line, as bytes that are equal for the same process; empty = unknown
    size: int  # bytes of the prefix


NONE = Prefix(NEVER, b"", 0)


def line_time(prefix: Prefix, line: bytes, end: int = 64) -> float:
    """Return the time of a line, from its prefix or from its own text; nan = unknown.

    Args:
        prefix: The prefix of the line.
        end: Last possible end of a time in the text.
    """
    return read_time(line, prefix.size, end) if isnan(prefix.when) else prefix.when


def read_prefix(line: bytes) -> Prefix:
    """Parse the prefix of a line."""
    if not line or line[0] not in _STARTS:
        return NONE
    when, rank, size = NEVER, b"", 0
    while match := _PREFIX.match(line, size):
        size = match.end()
        if match["time"]:
            when = read_time(match["time"])
        else:
            rank += re.sub(_RANDOM, rb"\1\2", match[0]).rstrip()
    return Prefix(when, rank, size) if size else NONE
