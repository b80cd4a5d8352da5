"""Fetch files by HTTP; the caller sees a file only after its checksum was compared."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from chartgen.errors import MissingToolError, Problem
from chartgen.programs import Progress

LARGEST = 1 << 30  # bytes; eight times the largest program
# Bytes; registries need not take larger manifests (OCI distribution specification 1.1, pushing manifests).
_MANIFEST = 4 << 20
_SLOWEST = 16 << 10  # bytes in a second; kube-apiserver would take half an hour
_HEARTBEAT = 15.0  # seconds between progress lines
_DIGEST = re.compile(r"(sha256|sha512):[0-9a-f]+")
_HEADERS = {"User-Agent": "chartgen"}


@dataclass(frozen=True)
class Source:
    """Where files come from.

    Args:
        mirror: URL below which they are, as HOST/PATH; empty for their own hosts, by https only.
        patience: Seconds that a server may take for the next bytes.
        stop: Ends downloads of other threads.
    """

    mirror: str = ""
    patience: float = 30.0
    stop: Event = field(default_factory=Event)

    def address(self, url: str) -> str:
        """Return the address of a file, whose scheme does not count."""
        rest = url.partition("://")[2]
        return f"{self.mirror.rstrip('/')}/{rest}" if self.mirror else f"https://{rest}"

    def server(self, url: str) -> str:
        """Return the address of a file's server."""
        parts = urlsplit(self.address(url))
        return f"{parts.scheme}://{parts.netloc}/"


def unreachable(servers: Iterable[str], limit: float = 5.0) -> dict[str, str]:
    """Return the servers that do not answer within some seconds, all asked at once, and why."""
    silent = dict.fromkeys(servers, f"no answer within {limit:g} s")
    threads = [Thread(target=_ask, args=(each, limit, silent), daemon=True) for each in silent]
    for thread in threads:
        thread.start()
    end = time.monotonic() + limit
    for thread in threads:  # the look-up of a name has no time limit of its own
        thread.join(max(0.0, end - time.monotonic()))
    return silent.copy()


def save(url: str, digest: str, path: Path, source: Source, say: Progress) -> None:
    """Write a file, whose checksum must be the given one.

    Args:
        url: The file.
        digest: `sha256:` or `sha512:` and its checksum.
        path: Where to write it.
        source: Where it comes from.
        say: Receives a line regularly.

    Raises:
        MissingToolError: It cannot be fetched, or has another checksum.
    """
    address, found = source.address(url), _hash(digest)
    with path.open("wb") as file:
        for chunk in _chunks(address, source, say):
            found.update(chunk)
            file.write(chunk)
    _compare(address, digest, found.hexdigest())


def manifest(url: str, digest: str, source: Source, accept: str) -> bytes:
    """Return a manifest of a registry, of one of the accepted types, whose checksum must be the given one.

    Raises:
        MissingToolError: It cannot be fetched, or has another checksum.
    """
    address, found = source.address(url), _hash(digest)
    content = b"".join(_chunks(address, source, lambda _: None, limit=_MANIFEST, accept=accept))
    found.update(content)
    _compare(address, digest, found.hexdigest())
    return content


def _hash(digest: str) -> Any:
    if not _DIGEST.fullmatch(digest):
        raise MissingToolError(f"{digest[:40]} is not a checksum by sha256 or sha512")
    return hashlib.new(digest.partition(":")[0])


def _compare(address: str, digest: str, found: str) -> None:
    kind, _, expected = digest.partition(":")
    if found != expected:
        problem = f"{address} has the {kind} checksum {found[:12]}..., not {expected[:12]}..."
        raise MissingToolError(Problem(problem, hint="it was changed, or is another release"))


def _chunks(address: str, source: Source, say: Progress, limit: int = LARGEST, accept: str = "*/*") -> Iterator[bytes]:
    """Return the bytes of a file as they come, at most `limit`.

    Raises:
        MissingToolError: The server does not answer, refuses, is too slow, or ends too early.
    """
    try:
        with _open(Request(address, headers=_HEADERS | {"Accept": accept}), source.patience) as answer:  # noqa: S310 by Source
            total = int(answer.headers.get("Content-Length") or 0)
            yield from _checked(iter(lambda: answer.read1(1 << 18), b""), total, limit, source, say)
    except HTTPError as error:
        raise MissingToolError(f"{address} cannot be fetched: {error.code} {_reason(error)}") from None
    except TimeoutError:
        raise MissingToolError(f"{address} cannot be fetched: nothing comes for {source.patience:g} s") from None
    except (OSError, HTTPException, ValueError) as error:
        raise MissingToolError(f"{address} cannot be fetched: {_reason(error)}") from None


def _checked(chunks: Iterator[bytes], total: int, limit: int, source: Source, say: Progress) -> Iterator[bytes]:
    """Pass chunks on, with a line from time to time; give up when they are too many, too few or too slow."""
    started, done, told = time.monotonic(), 0, 0.0
    for chunk in chunks:
        done, took = done + len(chunk), time.monotonic() - started
        if source.stop.is_set():
            raise ValueError("the command was stopped")
        if done > limit:
            raise ValueError(f"it has more than {limit >> 20} MB")
        if took > 2 * source.patience and done < _SLOWEST * took:
            raise ValueError(f"less than {_SLOWEST >> 10} KB come in a second")
        if took - told > _HEARTBEAT and total:
            told = took
            say(f"{done >> 20} of {total >> 20} MB, about {took * (total - done) / done:.0f} s left")
        yield chunk
    if done < total:
        raise ValueError(f"it ends after {done} of {total} bytes")


class _SameScheme(HTTPRedirectHandler):
    """Follow redirects of one scheme only: never from https to another, nor from a mirror to a file."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        if urlsplit(newurl).scheme != urlsplit(req.full_url).scheme:
            raise URLError(f"it redirects to {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _NoRedirect(HTTPRedirectHandler):
    """Raise HTTPError for a redirect."""

    def redirect_request(self, *_: Any) -> None:
        return


def _open(request: Request, limit: float, redirects: type[HTTPRedirectHandler] = _SameScheme) -> Any:
    return build_opener(redirects).open(request, timeout=limit)


def _ask(server: str, limit: float, silent: dict[str, str]) -> None:
    try:
        _open(Request(server, method="HEAD", headers=_HEADERS), limit, _NoRedirect).close()  # noqa: S310 of Source
    except HTTPError:  # an answer, also a redirect: the pages of a registry may be where its images are not
        pass
    except (OSError, HTTPException, ValueError) as error:
        silent[server] = _reason(error)
        return
    silent.pop(server)


def _reason(error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    return (str(reason) or type(reason).__name__).splitlines()[0]  # urllib reports a circle of redirects in three
