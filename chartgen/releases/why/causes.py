"""The table of causes, causes.yaml: the meaning of lines, exit codes, stacks and collectives that do not end."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.data.exits import exit_codes
from chartgen.helm.yaml import load_file, require_map

_FILE = Path(__file__).with_name("causes.yaml")
# A line is compared in this order: an exception that only reports the end of another rank is an echo.
_COMPARED = ("root", "hang", "echo", "error")
LEVELS = ("root", "error", "hang", "echo")


@dataclass(frozen=True)
class Cause:
    """Why a run ends."""

    name: str
    level: str  # one of LEVELS, the most certain first
    what: str  # one clause for people
    hint: str
    restart: str = "same"  # whether another try may succeed: same, elsewhere (on another machine), none
    pattern: re.Pattern[str] | None = None  # found in a line of a log, or in a stack


@dataclass(frozen=True)
class CauseTable:
    """All causes, in the order in which a line is compared."""

    rows: tuple[Cause, ...]
    exits: dict[int, Cause]  # exit code -> cause, 128 added to the number of a signal
    stacks: tuple[Cause, ...]
    waits: tuple[Cause, ...]  # causes of collectives that do not end
    collectives: re.Pattern[str]  # found in the stack of a rank that waits for others
    harmless: re.Pattern[str]  # lines of runs that go on
    triggers: tuple[str, ...]  # texts of which each line that a row matches contains one, in small letters

    def of_line(self, line: str) -> Cause | None:
        """Return the cause that a line names."""
        small = line.lower()
        if not any(map(small.__contains__, self.triggers)) or self.harmless.search(line):
            return None
        return next((row for row in self.rows if row.pattern and row.pattern.search(line)), None)

    def of_exit(self, code: int) -> Cause | None:
        """Return the cause that an exit code names; torchrun prints the number of a signal as a negative code."""
        return self.exits.get(code if code >= 0 else 128 - code)

    def named(self, name: str) -> Cause:
        """Return a cause by its id."""
        return next(row for row in (*self.rows, *self.waits) if row.name == name)


@lru_cache(maxsize=1)
def cause_table() -> CauseTable:
    """Return the table of causes."""
    data: dict[str, Any] = dict(require_map(load_file(_FILE), "the table of causes"))
    rows = tuple(_cause(name, level, row) for level in _COMPARED for name, row in data["levels"][level].items())
    known = {row.name: row for row in rows}
    exits = {
        code: known.get(row["cause"]) or _cause(row["cause"], row["level"], row) for code, row in exit_codes().items()
    }
    return CauseTable(
        rows,
        exits,
        tuple(_cause(name, "hang", row) for name, row in data["stacks"].items()),
        tuple(_cause(name, "hang", row) for name, row in data["waits"].items()),
        re.compile(data["collectives"]),
        re.compile(data["harmless"]),
        tuple(data["triggers"]),
    )


def _cause(name: str, level: str, row: dict[str, Any]) -> Cause:
    pattern = re.compile(row["pattern"]) if "pattern" in row else None
    return Cause(name, level, row["what"], row["hint"], row.get("restart", "same"), pattern)
