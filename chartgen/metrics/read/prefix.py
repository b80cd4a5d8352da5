"""What stands before a line: a time, and who wrote it.

kubectl logs --prefix writes `[pod/NAME/CONTAINER] `, --timestamps an RFC 3339 time (which job launchers put in
brackets); torchrun --tee writes `[default0]:` (docs.pytorch.org, torch.distributed.elastic.multiprocessing), srun
--label and the NeMo launcher `0: ` (slurm.schedmd.com/srun.html), mpirun --tag-output `[1,0]<stdout>:`
(docs.open-mpi.org, mpirun).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isnan
from typing import NamedTuple

from chartgen.metrics.read.clock import read_time, times_of
from chartgen.metrics.read.events import NEVER

_TIME = rb"\[?\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)\]? "
# As kubectl writes it, of which a column of times is made.
_UTC = rb"(\d{4}-\d\d-\d\dT\d\d:\d\d):(\d\d(?:\.\d{1,9})?)Z "
_PREFIX = re.compile(
    rb"(?P<time>" + _TIME + rb")"
    rb"|(?P<pod>\[pod/[^\]]+\] ?)"
    rb"|(?P<rank>[\w/.-]* ?\[default\d+\]: ?|\[\d+,\d+\]<\w+>: ?|\d+: )"
)
# Controllers give each new pod of one index another five characters: it is the same rank, started again.
_RANDOM = rb"(\[pod/[^/\]]+)-[a-z0-9]{5}(/|\])"
_STARTS = frozenset(b"[0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Prefix(NamedTuple):
    """The beginning of a line.

    Args:
        when: When the line was written; nan = the prefix has no time.
        rank: Who wrote it, as bytes that are equal for the same process; empty = not told.
        size: Bytes of the prefix.
    """

    when: float
    rank: bytes
    size: int


class Lines(NamedTuple):
    """Many lines that one process wrote, without what stands before them.

    Args:
        text: The lines.
        total: How many they are; empty ones do not count.
        when: When each was written; None = no prefix tells.
        rank: Who wrote them, as in a Prefix.
    """

    text: bytes
    total: int
    when: Sequence[float] | None = None
    rank: bytes = b""


NONE = Prefix(NEVER, b"", 0)


def written(prefix: Prefix, line: bytes, end: int = 64) -> float:
    """Return when a line was written: by its prefix, or by a time in its own text; nan = not told.

    Args:
        prefix: What stands before the line.
        line: The line.
        end: Where a time in the text has to end.
    """
    return read_time(line, prefix.size, end) if isnan(prefix.when) else prefix.when


def read_prefix(line: bytes) -> Prefix:
    """Read what stands before a line's own text."""
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


def read_prefixes(text: bytes, count: int) -> Lines | None:
    """Take away what stands before each of many lines; None when it is not the same but for a time.

    Args:
        text: The lines.
        count: How many they are; empty ones do not count.

    Raises:
        ValueError: A prefix has something that only looks like a time.
    """
    first = text[: text.find(b"\n")]
    prefix = read_prefix(first)
    if not prefix.size:
        return Lines(text, count)
    parts = re.split(_TIME, first[: prefix.size])
    timed = not isnan(prefix.when)
    rows = re.findall(rb"(?m)^%s(.*)" % _UTC.join(map(re.escape, parts)), text)
    if len(parts) != 1 + timed or len(rows) != count:
        return None
    if not timed:
        return Lines(b"\n".join(rows), count, None, prefix.rank)
    minutes, seconds, lines = zip(*rows, strict=True)
    return Lines(b"\n".join(lines), count, times_of(minutes, seconds), prefix.rank)
