"""The prefix of a line: a time, and the process that wrote the line.

kubectl logs --prefix writes `[pod/NAME/CONTAINER] `, --timestamps an RFC 3339 time (which job launchers put in
brackets); torchrun --tee writes `[default0]:`, or its --role, such as `[rank0]:` (docs.pytorch.org,
torch.distributed.elastic.multiprocessing), srun --label and the NeMo launcher `0: ` (slurm.schedmd.com/srun.html),
mpirun --tag-output `[1,0]<stdout>:` (docs.open-mpi.org, mpirun).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isnan
from typing import NamedTuple

from chartgen.metrics.read.clock import epoch_seconds, read_time
from chartgen.metrics.read.events import NEVER

_TIME = rb"\[?\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)\]? "
# The format of kubectl, for columns of times.
_UTC = rb"(\d{4}-\d\d-\d\dT\d\d:\d\d):(\d\d(?:\.\d{1,9})?)Z "
_PREFIX = re.compile(
    rb"(?P<time>" + _TIME + rb")"
    rb"|(?P<pod>\[pod/[^\]]+\] ?)"
    rb"|(?P<rank>[\w/.-]* ?\[(?:default|rank)\d+\]: ?|\[\d+,\d+\]<\w+>: ?|\d+: )"
)
# Controllers give each new pod of an index five new characters; it is the same rank, started again.
_RANDOM = rb"(\[pod/[^/\]]+)-[a-z0-9]{5}(/|\])"
_STARTS = frozenset(b"[0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Prefix(NamedTuple):
    """The prefix of a line.

    Args:
        when: Time of the line; nan = the prefix has no time.
        rank: The process that wrote the line, as bytes that are equal for the same process; empty = unknown.
        size: Bytes of the prefix.
    """

    when: float
    rank: bytes
    size: int


class Prefixes(NamedTuple):
    """The prefixes of many lines of one process.

    Args:
        rest: The lines without their prefixes.
        when: Time of each line; None = the prefixes have no time.
        rank: The process that wrote them, as in a Prefix.
    """

    rest: Sequence[bytes]
    when: Sequence[float] | None = None
    rank: bytes = b""


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


def read_prefixes(lines: Sequence[bytes]) -> Prefixes | None:
    """Parse the prefixes of many lines; return None when they differ in more than the time.

    Raises:
        ValueError: A prefix has an invalid time.
    """
    prefix = read_prefix(lines[0])
    if not prefix.size:
        return Prefixes(lines)
    parts = re.split(_TIME, lines[0][: prefix.size])
    timed = not isnan(prefix.when)
    rows = re.findall(rb"(?m)^%s(.*)" % _UTC.join(map(re.escape, parts)), b"\n".join(lines))
    if len(parts) != 1 + timed or len(rows) != len(lines):
        return None
    if not timed:
        return Prefixes(rows, None, prefix.rank)
    minutes, seconds, rest = zip(*rows, strict=True)
    return Prefixes(rest, epoch_seconds(minutes, seconds), prefix.rank)
