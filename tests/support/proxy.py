"""Roads to the API server: one that can be cut or blocked, as clusters go away; one that answers in its place."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
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
    """Return a proxy for the time of a `with` block."""
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


@dataclass(frozen=True)
class Answer:
    """What is said in the API server's place."""

    status: int  # HTTP status
    body: dict[str, Any]  # as JSON
    headers: dict[str, str] = field(default_factory=dict)  # more headers


Fault = Callable[[str, str], "Answer | None"]  # method and path with its query -> an answer, or None for the server's


@contextmanager
def faults_of(plane: ControlPlane, folder: Path, fault: Fault) -> Iterator[tuple[Path, list[str]]]:
    """Forward requests to a control plane except those that a fault answers.

    Gives:
        A kubeconfig that leads here, and the requests so far, such as `GET /api/v1/pods?limit=500`.
    """
    config = json.loads(plane.kubeconfig.read_text())
    token = config["users"][0]["user"]["token"]
    context = ssl.create_default_context(cafile=str(plane.folder / "apiserver" / "apiserver.crt"))
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._forward()

        def do_POST(self) -> None:
            self._forward()

        def _forward(self) -> None:
            seen.append(f"{self.command} {self.path}")
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = fault(self.command, self.path)
            if answer is not None:
                self._reply(answer.status, json.dumps(answer.body).encode(), answer.headers)
                return
            target = urlsplit(plane.server)
            server = HTTPSConnection(target.hostname or "", target.port, context=context)
            headers = {"Authorization": f"Bearer {token}", "Content-Type": self.headers.get("Content-Type", "")}
            server.request(self.command, self.path, body or None, headers)
            reply = server.getresponse()
            self._reply(reply.status, reply.read(), {})
            server.close()

        def _reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{server.server_address[1]}"}
    config["users"][0]["user"] = {}
    kubeconfig = folder / "faults.kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    try:
        yield kubeconfig, seen
    finally:
        server.shutdown()
        server.server_close()
