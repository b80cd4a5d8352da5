"""Facts of machines, programs and versions, each with its source: one table a YAML file."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.helm.yaml import load_file, require_map

FOLDER = Path(__file__).parent


@lru_cache(maxsize=32)
def table(name: str) -> dict[str, Any]:
    """Return the table of a file of this folder, named without `.yaml`; each is read once."""
    found: dict[str, Any] = require_map(load_file(FOLDER / f"{name}.yaml"), name)
    return found
