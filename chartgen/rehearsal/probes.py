"""Readiness probes of programs on this machine."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path


def listens(port: int) -> bool:
    """Report whether a port of this machine accepts connections."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True


def answers(address: str, authority: Path | None = None, token: str = "") -> bool:
    """Report whether a GET returns 200; loopback only, so without a proxy."""
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    try:
        if authority:
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(authority))))
        request = urllib.request.Request(address)  # noqa: S310 - built above from http(s)://127.0.0.1
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.build_opener(*handlers).open(request, timeout=2) as reply:
            return bool(reply.status == 200)
    except (OSError, ssl.SSLError, urllib.error.URLError):
        return False
