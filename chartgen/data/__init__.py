"""Packaged data tables, each row with its source, and their loaders."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from chartgen.cached import read_cached, write_cached
from chartgen.helm.yaml import load, read_text, require_map

DATA = Path(__file__).parent
_READERS = (DATA.parent / "helm" / "yaml.py", DATA.parent / "helm" / "yaml_nodes.py")


@cache
def read_table(name: str) -> dict[str, Any]:
    """Read a table, else ChartgenError: as JSON from the user's cache, or as YAML, which takes ten times as long."""
    text, *readers = map(read_text, (DATA / name, *_READERS))
    key = sha256("\0".join((text, *readers)).encode()).hexdigest()
    table: dict[str, Any] | None = read_cached("tables", key)
    if table is None:
        table = require_map(load(text, DATA / name), name)
        write_cached("tables", key, table)
    return table
