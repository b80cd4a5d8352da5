"""What stands before a line: a time, and who wrote it.

kubectl logs --prefix writes `[pod/NAME/CONTAINER] `, --timestamps an RFC 3339 time; torchrun --tee writes
`[default0]:` (docs.pytorch.org, torch.distributed.elastic.multiprocessing), srun --label and the NeMo launcher
`0: ` (slurm.schedmd.com/srun.html), mpirun --tag-output `[1,0]<stdout>:` (docs.open-mpi.org, mpirun).
"""

from __future__ import annotations

import re
from math import isnan
from typing import NamedTuple

from chartgen.metrics.clock import read_time
from chartgen.metrics.events import NEVER

_PREFIX = re.compile(
    rb"(?:(?P<time>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) )"
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


NONE = Prefix(NEVER, b"", 0)


def written(prefix: Prefix, line: bytes, end: int = 64) -> float:
    """Tell when a line was written: by its prefix, or by a time in its own text; nan = not told.

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
            rank += re.sub(_RANDOM, rb"\1\2", match[0])
    return Prefix(when, rank, size) if size else NONE
