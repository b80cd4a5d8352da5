"""The compatibility lock: which versions go together, for checks and for the fragments that refuse the others."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.yamltext import load_file, require_map

_LOCK = Path(__file__).parent / "data" / "compat.yaml"


@lru_cache(maxsize=1)
def lock() -> dict[str, Any]:
    """Give the compatibility lock: plugins, settings, images, kubernetes, apis."""
    return dict(require_map(load_file(_LOCK), "the compatibility lock"))
