"""Prometheus itself, where there is one: what it thinks of metrics and of expressions, and a server that scrapes.

It is on PATH, or where .ci/run unpacks Debian's package.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

UNPACKED = Path(__file__).parents[2] / "build/prometheus/usr/bin"


def program(name: str) -> str:
    """Return the path of a program of Prometheus, or skip the test."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:{UNPACKED}")
    if found is None:
        pytest.skip(f"{name} is not here: .ci/run fetches it")
    return found


def check_metrics(text: str) -> None:
    """Have Prometheus' parser and its linter read a page of metrics.

    Raises:
        AssertionError: They object to something.
    """
    argv = [program("promtool"), "check", "metrics"]
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def check_expressions(expressions: Iterable[str], folder: Path) -> None:
    """Have Prometheus' parser read expressions, as rules that record them.

    Raises:
        AssertionError: One is not PromQL.
    """
    rules = [{"record": f"chartgen:number_{at}", "expr": each} for at, each in enumerate(expressions)]
    file = folder / "rules.yaml"
    file.write_text(json.dumps({"groups": [{"name": "test", "rules": rules}]}))
    argv = [program("promtool"), "check", "rules", str(file)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
