"""Places that a command is given: it neither waits for the writer of a pipe nor ends with a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chartgen.errors import ChartgenError, UsageError
from chartgen.kube.connection import connect
from chartgen.metrics.read.lines import find_logs
from chartgen.programs import cache_dir
from chartgen.releases.why.explanation import explain_files


def test_a_named_pipe_is_no_log(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    with pytest.raises(ChartgenError, match="is a pipe"):
        find_logs([str(tmp_path / "log")])
    with pytest.raises(ChartgenError, match="is a pipe"):
        explain_files([tmp_path / "log"])


@pytest.mark.parametrize("name", ["HOME", "XDG_CACHE_HOME", "CHARTGEN_CACHE"])
def test_a_home_that_is_unknown_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for other in ("XDG_CACHE_HOME", "CHARTGEN_CACHE"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "~" if name == "HOME" else "~nosuchuser/x")
    with pytest.raises(UsageError, match="home folder"):
        cache_dir()


def test_an_unknown_home_of_a_kubeconfig_is_named() -> None:
    with pytest.raises(UsageError, match="home folder"):
        connect(kubeconfig="~nosuchuser/config")
