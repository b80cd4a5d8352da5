"""The compatibility lock: which versions go together, for checks and for the fragments that refuse the others."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.yamltext import load_file, require_map

_LOCK = Path(__file__).parent / "data" / "compat.yaml"


@lru_cache(maxsize=1)
def lock() -> dict[str, Any]:
    """Give the compatibility lock: plugins, settings, images, floors, kubernetes, apis."""
    return dict(require_map(load_file(_LOCK), "the compatibility lock"))


def version(text: str) -> tuple[int, ...]:
    """Give a version as numbers that compare: v1.0.13_1 is behind v1.0.13, whatever stands between the digits."""
    return tuple(map(int, re.findall(r"\d+", text)))


def within(row: dict[str, str], text: str) -> bool:
    """Tell whether a version is in a row's range: `from` is the first that is, `below` the first that is not."""
    after_from = version(text) >= version(row.get("from", ""))
    return after_from and ("below" not in row or version(text) < version(row["below"]))
