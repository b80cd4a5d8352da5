"""A registry for charts on this machine: the reference registry of the Open Container Initiative (distribution)."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from process_helpers import running

from chartgen.kube import wait_for
from chartgen.rehearsal import engine_build

LOGIN = ("user", "opensesame4711")
# htpasswd -nbB with this login
_HASHED = "user:$2b$04$7RQHCZQhGDwmJhvdVNcg5uPD2qXVIMj5iRZbPuBZChMyoUGIsY146"
_SETTINGS = """\
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage:
  filesystem: {{rootdirectory: {folder}}}
http:
  addr: {address}
"""


@contextmanager
def registry(folder: Path, *, login: bool = False) -> Iterator[str]:
    """Run a registry, and give its address.

    Args:
        folder: An empty folder for its files.
        login: Whether it asks for `LOGIN`.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "127.0.0.1:{1}".format(*free.getsockname())
    settings = _SETTINGS.format(folder=folder / "data", address=address)
    if login:
        (folder / "users").write_text(_HASHED)
        settings += f"auth:\n  htpasswd: {{realm: charts, path: {folder / 'users'}}}\n"
    (folder / "config.yaml").write_text(settings)
    argv = [str(engine_build.build_engines(["registry"])["registry"]), "serve", str(folder / "config.yaml")]
    with running(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        wait_for(lambda: _answers(address), what="that the registry answers", timeout=180)
        yield address


def _answers(address: str) -> bool:
    host, _, port = address.partition(":")
    with socket.socket() as tried:
        return tried.connect_ex((host, int(port))) == 0
