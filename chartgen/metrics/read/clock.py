"""Times in logs, in seconds of an epoch. A time without a zone is UTC, as in containers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from chartgen.metrics.read.events import NEVER

_TIME = re.compile(rb"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d):(\d\d(?:[.,]\d{1,9})?)(Z|[+-]\d\d:?\d\d)?")
# Recently parsed minutes, since neighbouring lines share them.
_MINUTES: dict[bytes, int] = {}
_KEPT = 1000
_EPOCH = date(1970, 1, 1).toordinal()


def read_time(text: bytes, start: int = 0, end: int = 64) -> float:
    """Return the first time in a part of a line; nan without one."""
    match = _TIME.search(text, start, end)
    if match is None:
        return NEVER
    minute, seconds, zone = match.groups()
    try:
        whole = minute_of(minute) + float(seconds.replace(b",", b"."))
    except ValueError:
        return NEVER  # not a valid time
    return whole - _offset(zone) if zone else whole


def minute_of(text: bytes) -> int:
    """Return the first second of a minute such as 2026-02-06 20:55.

    Raises:
        ValueError: The minute is invalid.
    """
    found = _MINUTES.get(text)
    if found is None:
        if len(_MINUTES) >= _KEPT:
            _MINUTES.clear()
        days = date.fromisoformat(text[:10].decode()).toordinal() - _EPOCH
        found = _MINUTES[text] = days * 86400 + int(text[11:13]) * 3600 + int(text[14:16]) * 60
    return found


def epoch_seconds(minutes: Sequence[bytes], seconds: Sequence[bytes]) -> list[float]:
    """Convert minutes such as 2026-02-06 20:55, or nothing, and their seconds to seconds of an epoch.

    Raises:
        ValueError: A time is invalid.
    """
    begun = {minute: minute_of(minute) if minute else NEVER for minute in set(minutes)}
    return [begun[minute] + float(second or 0) for minute, second in zip(minutes, seconds, strict=True)]


def _offset(zone: bytes) -> int:
    if zone == b"Z":
        return 0
    size = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return -size if zone.startswith(b"-") else size
