"""The collectives, as PyTorch does them: how each is timed, and whether what arrives is right.

Sizes, counts and bandwidths are those of nccl-tests (doc/PERFORMANCE.md, src/*.cu).
"""

from __future__ import annotations

import re
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from table import BandwidthRow

# What is sent repeats after this many numbers: a prime, so that no block of a message looks like its neighbour.
PERIOD = 251
# Elements that are compared at a time, in rows of PERIOD.
ROWS = 1 << 18
# Whole numbers up to here are exact in each number format.
EXACT = {"float": 1 << 24, "half": 1 << 11, "bfloat16": 1 << 8}
# What gloo says of a collective and of a number format that it does not know (ProcessGroupGloo.cpp, ProcessGroup.hpp).
_UNKNOWN = re.compile(r"(no|not) support|[Ii]nvalid scalar type")


class UnsupportedError(Exception):
    """What the image's PyTorch cannot measure."""


@dataclass(frozen=True)
class Collective:
    """What is particular to one collective."""

    redop: str = "none"  # how numbers are joined
    trips: int = 1  # times that a byte crosses the links, but for a rank's own share: the factor of the bus bandwidth
    sends_share: bool = False  # whether a rank sends its share of the message only
    receives_share: bool = False  # whether a rank receives its share only
    # Where the result can go: PyTorch reduces in place, and its alltoall needs a second buffer
    places: tuple[str, ...] = ("out", "in")


COLLECTIVES = {
    "all_reduce": Collective("sum", trips=2, places=("in",)),
    "all_gather": Collective(sends_share=True),
    "reduce_scatter": Collective("sum", receives_share=True),
    "alltoall": Collective(places=("out",)),
}


@dataclass(frozen=True)
class RankGroup:
    """Ranks that measure together, this process's place among them, and PyTorch's handle; None = all ranks."""

    size: int
    rank: int
    handle: Any = None


def numbers(rank: int, ranks: int, limit: int) -> list[int]:
    """Return what a rank sends, over and over: so small that sums of several ranks are exact, however they are made."""
    apart = -(-4 * ranks // limit)
    most = min(limit // -(-ranks // apart), 63)
    series = (1 + (place * (2 * rank + 1) + rank) % most for place in range(PERIOD))
    return [number if (place + rank) % apart == 0 else 0 for place, number in enumerate(series)]


class Bench:
    """The device of this process, and how it measures."""

    def __init__(self, torch: Any, given: Namespace, device: Any) -> None:
        self.torch, self.dist, self.given, self.device = torch, torch.distributed, given, device
        self.dtype, self.limit = getattr(torch, given.type), EXACT[given.type]
        # not of the dtype: PyTorch before 2.1 cannot tell it there
        self.width = torch.zeros((), dtype=self.dtype).element_size()
        self.buffers: list[Any] = []

    def allocate(self, size: int) -> None:
        """Make two buffers of this many bytes."""
        self.buffers = [self.torch.zeros(size // self.width, dtype=self.dtype, device=self.device) for _ in "io"]

    def total(self, values: list[float], group: RankGroup) -> list[float]:
        """Add values of the ranks up, which also makes the ranks wait for each other."""
        tensor = self.torch.tensor(values, dtype=self.torch.float64, device=self.device)
        self.dist.all_reduce(tensor, group=group.handle)
        return list(tensor.tolist())

    def measure(self, operation: str, size: int, group: RankGroup) -> list[BandwidthRow]:
        """Measure one size in each place of the result; none if too small. UnsupportedError in all ranks: none such."""
        parts = 1 if operation == "all_reduce" else group.size
        share = size // self.width // parts
        places = COLLECTIVES[operation].places if share else ()
        try:
            return [self._measure(operation, place, share, share * parts, group) for place in places]
        except RuntimeError as error:
            if not _UNKNOWN.search(str(error)):
                raise
            what = f"{operation} of {self.given.type} with {self.given.backend} of PyTorch {self.torch.__version__}"
            raise UnsupportedError(f"{what} cannot be measured: {error}") from error

    def _measure(self, operation: str, place: str, share: int, whole: int, group: RankGroup) -> BandwidthRow:
        kind = COLLECTIVES[operation]
        sent, received = self.buffers[0][:whole], self.buffers[place == "out"][:whole]
        own = slice(share * group.rank, share * (group.rank + 1))
        send = sent[own] if kind.sends_share else sent
        receive = received[own] if kind.receives_share else received
        call, numbers_sent = self._call(operation, send, receive, group), numbers(group.rank, group.size, self.limit)
        self._fill(send, numbers_sent)
        spent = self._timed(call, group)
        # in place, the result of one call is what the next one sends
        self._fill(send, numbers_sent)
        call()
        bad = sum(self._wrong(*part) for part in self._expected(operation, receive, share, group))
        spent, wrong = self.total([spent, bad], group)
        seconds, size = spent / group.size, whole * self.width
        algbw = size / seconds / 1e9
        busbw = algbw * kind.trips * (group.size - 1) / group.size
        left = (operation, size, share, self.given.type, kind.redop, place)
        return BandwidthRow(*left, seconds * 1e6, algbw, busbw, int(wrong))

    def _call(self, operation: str, send: Any, receive: Any, group: RankGroup) -> Callable[[], object]:
        dist, handle = self.dist, group.handle
        calls: dict[str, Callable[[], object]] = {
            "all_reduce": lambda: dist.all_reduce(receive, group=handle),
            "all_gather": lambda: dist.all_gather_into_tensor(receive, send, group=handle),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(receive, send, group=handle),
            "alltoall": lambda: dist.all_to_all_single(receive, send, group=handle),
        }
        return calls[operation]

    def _timed(self, call: Callable[[], object], group: RankGroup) -> float:
        """Return the seconds of one call in a sequence of many."""
        for _ in range(self.given.warmup):
            call()
        self.total([0], group)
        start = time.perf_counter()
        for _ in range(self.given.iterations):
            call()
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()
        return (time.perf_counter() - start) / int(self.given.iterations)

    def _expected(
        self, operation: str, receive: Any, share: int, group: RankGroup
    ) -> Iterator[tuple[Any, list[int], int]]:
        """Give the parts of what arrived, with the numbers that repeat in each and the place where they begin."""
        by_rank = [numbers(rank, group.size, self.limit) for rank in range(group.size)]
        begin = share * group.rank if operation in ("reduce_scatter", "alltoall") else 0
        if COLLECTIVES[operation].redop == "sum":
            yield receive, [sum(each) for each in zip(*by_rank, strict=True)], begin
        else:
            yield from ((receive[share * rank : share * (rank + 1)], each, begin) for rank, each in enumerate(by_rank))

    def _tensor(self, repeated: list[int], begin: int) -> Any:
        at = begin % PERIOD
        return self.torch.tensor(repeated[at:] + repeated[:at], dtype=self.dtype, device=self.device)

    def _fill(self, part: Any, repeated: list[int]) -> None:
        table, whole = self._tensor(repeated, 0), len(part) // PERIOD * PERIOD
        part[:whole].view(-1, PERIOD).copy_(table)
        part[whole:].copy_(table[: len(part) - whole])

    def _wrong(self, part: Any, repeated: list[int], begin: int) -> int:
        table, whole = self._tensor(repeated, begin), len(part) // PERIOD * PERIOD
        blocks = [*part[:whole].view(-1, PERIOD).split(ROWS), part[whole:]]
        return sum(int((block != table[: block.shape[-1]]).sum()) for block in blocks)
