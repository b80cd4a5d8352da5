"""A road to the API server that can be cut or blocked: what clients see of a cluster that goes away and comes back."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from chartgen.rehearsal.controlplane import ControlPlane


class Proxy:
    """Forwards connections to a control plane's API server until it is cut.

    Args:
        kubeconfig: How the control plane is reached.
        folder: Where to write a kubeconfig that leads through the proxy.
    """

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        self._target = ("127.0.0.1", urlsplit(config["clusters"][0]["cluster"]["server"]).port or 0)
        self._open: list[socket.socket] = []
        self._is_cut = False
        self._flows = threading.Event()
        self._flows.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps(config))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Cut all connections, and every new one at once."""
        self._is_cut = True
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def block(self) -> None:
        """Take what clients send, and let nothing through, as a network does that drops packets."""
        self._flows.clear()

    def mend(self) -> None:
        """Let connections through again."""
        self._is_cut = False
        self._flows.set()

    def close(self) -> None:
        """End it."""
        self.cut()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._is_cut:
                    client.close()
                    continue
                server = socket.create_connection(self._target)
                self._open += [client, server]
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=_forward, args=(*pair, self._flows), daemon=True).start()


@contextmanager
def proxy_to(plane: ControlPlane, folder: Path) -> Iterator[Proxy]:
    """Give a proxy for the time of a `with` block."""
    proxy = Proxy(plane.kubeconfig, folder)
    try:
        yield proxy
    finally:
        proxy.close()


def _forward(source: socket.socket, target: socket.socket, flows: threading.Event) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            flows.wait()
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
    source.close()
