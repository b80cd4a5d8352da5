"""A server that answers where an API server would: a stranger's, who writes each byte of it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Answer = bytes | Callable[[BaseHTTPRequestHandler], object]
VERSION = {"version": json.dumps({"gitVersion": "v1.36.3"}).encode()}


def kubeconfig(address: str) -> str:
    """Return a kubeconfig file, which is JSON, too."""
    entries = {
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "ml"}}],
    }
    return json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "c", **entries})


@contextlib.contextmanager
def answering(folder: Path, answer: Callable[[str], Answer | None]) -> Iterator[Path]:
    """Serve what a function returns for each path with its query, 404 for None; return a kubeconfig file."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else each answer waits 40 ms for the delayed acknowledgement of its head

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            found = answer(self.path.lstrip("/"))
            with contextlib.suppress(OSError):  # the reader has hung up
                if callable(found):
                    found(self)
                    self.close_connection = True
                else:
                    self.send_response(404 if found is None else 200)
                    self.send_header("Content-Length", str(len(found or b"{}")))
                    self.end_headers()
                    self.wfile.write(found or b"{}")

        do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    file = folder / "kubeconfig"
    file.write_text(kubeconfig(f"http://127.0.0.1:{server.server_port}"))
    try:
        yield file
    finally:
        server.shutdown()
        server.server_close()
