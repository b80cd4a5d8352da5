"""Times as logs write them, in seconds of an epoch. A time without a zone is taken as UTC, as containers have it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from chartgen.metrics.read.events import NEVER

_TIME = re.compile(rb"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d):(\d\d(?:[.,]\d{1,9})?)(Z|[+-]\d\d:?\d\d)?")
# The last minutes that were read: neighbouring lines share theirs.
_MINUTES: dict[bytes, int] = {}
_KEPT = 1000
_EPOCH = date(1970, 1, 1).toordinal()


def read_time(text: bytes, start: int = 0, end: int = 64) -> float:
    """Find the first time in a part of a line; nan when there is none.

    Args:
        text: A line.
        start: Where to begin.
        end: Where to end.
    """
    match = _TIME.search(text, start, end)
    if match is None:
        return NEVER
    minute, seconds, zone = match.groups()
    try:
        whole = minute_of(minute) + float(seconds.replace(b",", b"."))
    except ValueError:
        return NEVER  # it only looks like a time
    return whole - _offset(zone) if zone else whole


def minute_of(text: bytes) -> int:
    """Return the first second of a minute such as 2026-02-06 20:55.

    Raises:
        ValueError: There is no such minute.
    """
    found = _MINUTES.get(text)
    if found is None:
        if len(_MINUTES) >= _KEPT:
            _MINUTES.clear()
        days = date.fromisoformat(text[:10].decode()).toordinal() - _EPOCH
        found = _MINUTES[text] = days * 86400 + int(text[11:13]) * 3600 + int(text[14:16]) * 60
    return found


def times_of(minutes: Sequence[bytes], seconds: Sequence[bytes]) -> list[float]:
    """Join minutes such as 2026-02-06 20:55, or nothing, and their seconds to seconds of an epoch.

    Raises:
        ValueError: One is no time.
    """
    begun = {minute: minute_of(minute) if minute else NEVER for minute in set(minutes)}
    return [begun[minute] + float(second or 0) for minute, second in zip(minutes, seconds, strict=True)]


def _offset(zone: bytes) -> int:
    if zone == b"Z":
        return 0
    size = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return -size if zone.startswith(b"-") else size
