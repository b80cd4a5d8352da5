"""A web server of this machine for what data programs fetch, and the `download` program of the lab's chart."""

from __future__ import annotations

import contextlib
import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from pod_runner import run
from rendered import Objects

TOKEN = "hf_very_secret"  # noqa: S105


@dataclass
class Site:
    """A web server: files by path, what it does otherwise, and what was asked of it."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    # path -> what answers instead, as often as it stands in the list
    instead: dict[str, list[Callable[[BaseHTTPRequestHandler], None]]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    token: str = ""

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


def answer(handler: BaseHTTPRequestHandler, code: int, body: bytes = b"", **headers: str) -> None:
    handler.send_response(code)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def file_answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    """Answer with a file, or the part of it that was asked for."""
    asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    if not asked:
        return answer(handler, 200, body)
    start = int(asked[1])
    if start >= len(body):
        return answer(handler, 416)
    return answer(handler, 206, body[start:], Content_Range=f"bytes {start}-{len(body) - 1}/{len(body)}")


def tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return what a server needs to answer https://."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@contextlib.contextmanager
def serving(site: Site, encryption: ssl.SSLContext | None = None) -> Iterator[Site]:
    """Serve the site on a free port of this machine, over TLS where there is a certificate."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append((self.path, dict(self.headers)))
            path = urlsplit(self.path).path
            if site.instead.get(path):
                site.instead[path].pop(0)(self)
            elif site.token and self.headers.get("Authorization") != f"Bearer {site.token}":
                answer(self, 401)
            elif self.path in site.files or path in site.files:
                file_answer(self, site.files.get(self.path, site.files.get(path, b"")))
            else:
                answer(self, 404)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if encryption:
        server.socket = encryption.wrap_socket(server.socket, server_side=True)
    site.address = f"{'https' if encryption else 'http'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def files(folder: Path) -> list[str]:
    """All files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def download(*sets: str) -> Objects:
    return run("launcher=download", *sets)


def hub(site: Site, kind: str, name: str, revision: str, held: dict[str, bytes]) -> None:
    """Put a repository of Hugging Face's hub on the server, with a listing of two pages."""
    plain = kind.removesuffix("/") if kind == "datasets/" else ""
    entries: list[dict[str, object]] = [{"type": "directory", "path": "folder"}]
    entries += [{"type": "file", "path": path, "size": len(body)} for path, body in held.items()]
    base = f"/api/{kind or 'models/'}{name}/tree/{revision}"
    for path, body in held.items():
        site.files[f"/{plain + '/' if plain else ''}{name}/resolve/{revision}/{path}"] = body
    site.files[f"{base}?recursive=true&cursor=2"] = json.dumps(entries[2:]).encode()
    link = f'<{site.address}{base}?recursive=true&cursor=2>; rel="next"'
    first = json.dumps(entries[:2]).encode()

    def listing(handler: BaseHTTPRequestHandler) -> None:
        if site.token and handler.headers.get("Authorization") != f"Bearer {site.token}":
            answer(handler, 401)
        elif "cursor" in handler.path:
            answer(handler, 200, json.dumps(entries[2:]).encode())
        else:
            answer(handler, 200, first, Link=link)

    site.instead[base] = [listing] * 20
