"""How much work a command does, counted and not timed: `python counted_work.py COMMAND...` prints it as JSON.

Times are noise on a shared machine. Calls of chartgen's own functions, its modules, and the programs that it starts are
the same on each machine; comprehensions are left out, because newer Pythons do not call them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import CodeType, FrameType

PACKAGE = str(Path(__file__).parents[2] / "chartgen")


class Work:
    """Counts while a command runs."""

    def __init__(self) -> None:
        self.calls = self.processes = 0
        self._own: dict[CodeType, bool] = {}

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        """Count a call of a function of chartgen."""
        if event == "call":
            code = frame.f_code
            if code not in self._own:
                self._own[code] = code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<")
            self.calls += self._own[code]

    def audit(self, event: str, _: object) -> None:
        """Count a program that is started."""
        self.processes += event == "subprocess.Popen"


def main() -> None:
    """Run a command with its output thrown away, and print the counts."""
    work, answers, sys.stdout = Work(), sys.stdout, Path("/dev/null").open("w", encoding="utf-8")  # noqa: SIM115
    sys.addaudithook(work.audit)
    sys.setprofile(work.profile)
    from chartgen.cli import main as chartgen

    code: object = 0
    try:
        chartgen(sys.argv[1:])
    except SystemExit as ended:
        code = ended.code or 0
    sys.setprofile(None)
    modules = sum(name.split(".")[0] == "chartgen" for name in sys.modules)
    figures: dict[str, object] = {"calls": work.calls, "modules": modules, "processes": work.processes, "exit": code}
    print(json.dumps(figures), file=answers)


if __name__ == "__main__":
    main()
