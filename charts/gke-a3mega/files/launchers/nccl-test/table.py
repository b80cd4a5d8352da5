"""Rows of measurements, in the columns that nccl-tests prints."""

from __future__ import annotations

from dataclasses import dataclass

HEADER = """\
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)"""
UNITS = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30}


@dataclass(frozen=True)
class BandwidthRow:
    """One measurement."""

    operation: str
    bytes: int  # size of the message: what a rank sends or what it receives, whichever is more
    count: int  # elements of it; where each rank has its own share, of one share
    type: str
    redop: str
    place: str  # out where the result goes to a second buffer, in where it does not
    time: float  # microseconds of one operation
    algbw: float  # bytes over time, GB/s
    busbw: float  # what the links between the GPUs carry, GB/s
    wrong: int  # elements of all ranks that are not what they should be


def format_rows(rows: list[BandwidthRow]) -> str:
    """Write what was measured of one size as one line; no collective here has a root."""
    row, places = rows[0], {row.place: row for row in rows}
    left = f"{row.bytes:>12}  {row.count:>12}  {row.type:>8}  {row.redop:>6}  {-1:>6}"
    return left + _half(places.get("out")) + _half(places.get("in"))


def _half(row: BandwidthRow | None) -> str:
    if row is None:
        return f"  {'N/A':>7}  {'N/A':>6}  {'N/A':>6}  {'N/A':>5}"
    digits = 0 if row.time >= 10000 else 1 if row.time >= 100 else 2
    return f"  {row.time:>7.{digits}f}  {row.algbw:>6.2f}  {row.busbw:>6.2f}  {row.wrong:>5}"


def bytes_of(text: str) -> int:
    """Return the number of a size such as 16Gi."""
    number = text.rstrip("KMGi")
    return int(number) << UNITS[text.removeprefix(number)]


def size_of(number: int) -> str:
    """Write a size in the largest unit that gives a whole number."""
    unit = max((unit for unit, bits in UNITS.items() if number % (1 << bits) == 0), key=UNITS.__getitem__)
    return f"{number >> UNITS[unit]} {unit}B"
