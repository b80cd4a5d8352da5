"""A registry for charts on this machine: the part of the OCI distribution specification 1.1 that push and pull use.

It stands in for a registry that answers as the specification says, with `helm push` and `helm pull` as real clients. A
real one (distribution, zot) takes ten minutes to build; nothing that lint does depends on which one it is.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Stored = dict[str, tuple[bytes, str]]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stored: Stored  # `<name>/blobs/<digest>` and `<name>/manifests/<tag or digest>` -> content and its type
    login: str

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        key = self.path.removeprefix("/v2/")
        if self.login and self.headers["Authorization"] != f"Basic {base64.b64encode(self.login.encode()).decode()}":
            self._answer(401, WWW_Authenticate='Basic realm="charts"')
        elif self.path == "/v2/":
            self._answer(200)
        elif key.endswith("/tags/list"):
            name = key.removesuffix("/tags/list")
            tags = [each.rpartition("/")[2] for each in self.stored if each.startswith(f"{name}/manifests/")]
            body = {"name": name, "tags": [tag for tag in tags if not tag.startswith("sha256:")]}
            self._answer(200, json.dumps(body).encode(), Content_Type="application/json")
        elif key in self.stored:
            body_, kind = self.stored[key]
            self._answer(200, body_, Content_Type=kind, Docker_Content_Digest=_digest(body_))
        else:
            self._answer(404)

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        self._answer(202, Location=f"{self.path.rstrip('/')}/1")

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        kind = self.headers["Content-Type"] or "application/octet-stream"
        name = self.path.removeprefix("/v2/")
        key = name.partition("/blobs/uploads/")[0]
        if "/manifests/" in name:
            self.stored[name] = self.stored[f"{name.rpartition('/')[0]}/{_digest(body)}"] = (body, kind)
        else:
            self.stored[f"{key}/blobs/{_digest(body)}"] = (body, kind)
        self._answer(201, Location=self.path, Docker_Content_Digest=_digest(body))

    def log_message(self, *_: object) -> None:
        pass


def _digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


@contextmanager
def registry(login: str = "") -> Iterator[tuple[str, Stored]]:
    """Run a registry, and give its address and what it holds.

    Args:
        login: `user:password` that it asks for; empty for nobody.
    """
    stored: Stored = {}
    handler = type("Handler", (_Handler,), {"stored": stored, "login": login})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}", stored
    finally:
        server.shutdown()
        server.server_close()
