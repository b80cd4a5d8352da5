"""The exporter of a run's steps, run alone."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from process_helpers import running

from chartgen.composer.library import BUILTIN

FILES = BUILTIN / "workloads/common/files"
LINE = [r" iteration +(?P<step>[0-9]+)/", r"iteration \(ms\): (?P<milliseconds>[0-9.]+) \|", r"loss: (?P<loss>[^ |]+)"]


def exporter_module() -> Any:
    """The exporter's module."""
    spec = importlib.util.spec_from_file_location("exporter", FILES / "exporter.py")
    assert spec
    assert spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("", 0))
        return int(found.getsockname()[1])


@contextmanager
def exporter(folder: Path, **settings: Any) -> Iterator[tuple[subprocess.Popen[str], int]]:
    port = settings.pop("port", free_port())
    (folder / "exporter.py").write_text((FILES / "exporter.py").read_text())
    (folder / "exporter.json").write_text(json.dumps({"port": port, "find": LINE, "also": [], "gpus": 2, **settings}))
    argv = [sys.executable, str(folder / "exporter.py"), str(folder / "socket")]
    with running(argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        yield process, port


def send(folder: Path, text: str) -> None:
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as out:
        out.sendto(text.encode(), str(folder / "socket"))
