"""The table of exit codes: whether a run that ended with one starts again."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from chartgen.data import read_table


@lru_cache(maxsize=1)
def exit_codes() -> dict[int, dict[str, Any]]:
    """Return what follows each exit code, and its cause."""
    return {int(code): row for code, row in read_table("exits.yaml").items()}


def final_exits() -> list[int]:
    """Return the exit codes after which no other start can succeed."""
    return [code for code, row in exit_codes().items() if row["then"] == "end"]
