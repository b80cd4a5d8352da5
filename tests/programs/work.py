"""Count the work of the usual commands, and write the table that a test compares: `make work`.

A change that makes a command do more is seen at once, and says in its commit what the work buys.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from ruamel.yaml import YAML

from chartgen.errors import MissingToolError
from chartgen.helm.program import find_helm

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "tests" / "data" / "work.yaml"
COUNTER = ROOT / "tests" / "support" / "counted_work.py"


def measure(command: str) -> dict[str, int]:
    """Return how much work a command does, in the repository's folder; FOLDER in it has a long log and nothing else.

    With `again: ` before it, a command like it has filled the cache.
    """
    text = ""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "long.log").write_text("".join(map(_step, range(1, 1000))))
        argv = [word.replace("FOLDER", folder) for word in command.removeprefix("again: ").split()]
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "CHARTGEN_CACHE": f"{folder}/cache"}
        with suppress(MissingToolError):  # few commands need it
            variables["CHARTGEN_HELM"] = str(find_helm().executable)
        for _ in range(1 + command.startswith("again: ")):
            program = [sys.executable, str(COUNTER), *argv]
            text = subprocess.run(program, cwd=ROOT, env=variables, capture_output=True, text=True, check=True).stdout
    counts: dict[str, int] = json.loads(text)
    return counts


def _step(number: int) -> str:
    """Return a step of Megatron-LM after 19 lines of NCCL's, so that a log of them has few steps in each block."""
    talk = f"host-1:4711:5021 [0] NCCL INFO Channel {number % 16:02d}/0 : 0[0] -> 1[1] via P2P/CUMEM, of a ring\n"
    figures = "elapsed time per iteration (ms): 3000.5 | global batch size: 256 | lm loss: 2.500000E+00 |"
    return f"{talk * 19} iteration {number:8d}/ 5000 | {figures}\n"


def main() -> None:
    """Count again and write the table."""
    table = YAML(typ="rt")
    table.indent(mapping=2, sequence=4, offset=2)
    rows = table.load(TABLE)
    for command in rows:
        rows[command] = measure(command)
    table.dump(rows, TABLE)


if __name__ == "__main__":
    main()
