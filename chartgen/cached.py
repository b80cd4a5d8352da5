"""Results that are costly to compute, as JSON in the user's cache folder, by a digest of everything they depend on."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

from chartgen.errors import ChartgenError
from chartgen.files import write_whole
from chartgen.programs import cache_dir

_OLDEST = 30 * 86400  # seconds since an entry was last read
_LARGEST = 20_000_000  # bytes of all entries of a kind; the findings of a chart have some kilobytes


def read_cached(kind: str, key: str) -> Any:
    """Return the data of a key, the digest of what it depends on, its code too; None when the cache has none."""
    try:
        file = _file(kind, key)
        if not all(map(_is_private, (file, file.parent, file.parent.parent))):
            return None
        data = json.loads(file.read_bytes())
        os.utime(file)
    except (OSError, ValueError, ChartgenError):
        return None
    return data


def write_cached(kind: str, key: str, data: Any) -> None:
    """Write data under a key; a cache that cannot be written is ignored."""
    with contextlib.suppress(OSError, ChartgenError):
        file = _file(kind, key)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(file, json.dumps(data))
        _prune(file.parent)


def _file(kind: str, key: str) -> Path:
    return cache_dir() / kind / f"{key}.json"


def _is_private(path: Path) -> bool:
    """Report whether no other user can have written a file or folder."""
    state = path.stat()
    return state.st_uid == os.getuid() and not state.st_mode & 0o022


def _prune(folder: Path) -> None:
    """Remove entries that were not read for a month, and the oldest ones beyond the size limit."""
    with os.scandir(folder) as entries:  # another process may remove one meanwhile
        stats = [(entry.stat(), entry.path) for entry in entries if entry.is_file(follow_symlinks=False)]
    total = 0
    for stat, path in sorted(stats, key=lambda each: -each[0].st_mtime_ns):
        total += stat.st_size
        if total > _LARGEST or time.time() - stat.st_mtime > _OLDEST:
            Path(path).unlink(missing_ok=True)
