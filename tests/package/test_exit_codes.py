"""Exit codes as docs/reference/stability.md promises them, one table over the commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from userlib import chartgen, write

VALUES = ("check", "render", "fit", "estimate", "rehearse", "exec", "build", "sandbox up")
WRONG = ("-f missing.yaml", "-f .", "--set nodes", "--set-json nodes={", "--set-file steps=missing", "--preset nothing")
FILES = (
    *("metrics missing.log", "metrics own.log --baseline missing.log", "why missing.log", "why ./missing/"),
    *("lint missing", "lint missing.yaml", "preset --from-hf missing.json"),
    *("check gke-a3mega --program-file missing.py", "check gke-a3mega --program-file ."),
    *("list targets --gpu h1000", "list machines --gpu h1000", "install my-run --set nodes=4"),
    *("rehearse gke-a3mega -n Bad_NS", "status my-run -n Bad_NS"),
    *("check missing", "show missing", "init missing", "list missing", "check gke-a3mega --nothing"),
)
FINDINGS = ("check gke-a3mega --set node=4", "check gke-a3mega --set nodes=x", "lint .")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = "iteration {0}/ 9 | elapsed time per iteration (ms): 10.0 | global batch size: 8 | lm loss: 1.0E+00 |\n"
    write(tmp_path, {"own.log": "".join(line.format(step) for step in range(1, 9))})


@pytest.mark.parametrize("options", WRONG)
@pytest.mark.parametrize("command", VALUES)
def test_values_that_cannot_be_read_are_a_usage_error(command: str, options: str) -> None:
    assert chartgen(*command.split(), "gke-a3mega", *options.split()).exit_code == 2


@pytest.mark.parametrize("typed", FILES)
def test_a_missing_file_or_name_is_a_usage_error(typed: str) -> None:
    assert chartgen(*typed.split()).exit_code == 2


@pytest.mark.parametrize("typed", FINDINGS)
def test_what_a_file_contains_is_a_finding(typed: str) -> None:
    assert chartgen(*typed.split()).exit_code == 1
