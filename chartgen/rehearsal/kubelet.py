"""Server of the logs of all simulated containers, the only request of the API server to a simulated machine.

It runs as a script, with the standard library only. kwok could serve logs too, but its server also exposes its metrics,
its profile and the names of the nodes without authentication; this one serves a single fixed sentence.
"""

from __future__ import annotations

import select
import ssl
import sys
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

_TIME = datetime(2026, 1, 1, tzinfo=timezone.utc)
_LINE = "a simulated machine runs no program; a real one shows its output here\n"
_PATH = "/containerLogs/"  # of the kubelet's API: namespace, pod and container follow


class KubeletServer(ThreadingHTTPServer):
    """A TLS server for this machine only."""

    daemon_threads = True

    def __init__(self, port: int, certificate: Path, key: Path) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        # The handler's thread does the handshake, so that one that hangs does not block other clients.
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)


class _Handler(BaseHTTPRequestHandler):
    timeout = 60

    def do_GET(self) -> None:
        """Answer like a kubelet with the requested log; with `follow`, wait until the client closes the connection."""
        address = urlsplit(self.path)
        if not address.path.startswith(_PATH):
            self.send_error(404)
            return
        query = {name: values[-1] for name, values in parse_qs(address.query).items()}
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(_log(query).encode())
        self.wfile.flush()
        if query.get("follow") == "true":
            select.select([self.connection], [], [])  # readable only when the client closes it

    def log_message(self, *_: object) -> None:
        """Print nothing; the default is a line for each request."""


def _log(query: dict[str, str]) -> str:
    if query.get("tailLines") == "0" or query.get("previous") == "true" or _since(query) > _TIME:
        return ""
    return f"{_TIME:%Y-%m-%dT%H:%M:%SZ} {_LINE}" if query.get("timestamps") == "true" else _LINE


def _since(query: dict[str, str]) -> datetime:
    if text := query.get("sinceTime"):
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    if seconds := query.get("sinceSeconds"):
        return datetime.fromtimestamp(datetime.now(timezone.utc).timestamp() - int(seconds), timezone.utc)
    return _TIME


if __name__ == "__main__":
    with KubeletServer(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])) as server:
        server.serve_forever()
