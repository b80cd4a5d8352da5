"""Download an engine's official program: a file, a member of an archive, or a file of a container image."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
import time
import zlib
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from chartgen.errors import MissingToolError, Problem
from chartgen.rehearsal.engines import Download, system
from chartgen.rehearsal.folders import draft_folder

_LARGEST = 1 << 30  # bytes; eight times the largest program
PATIENCE = 15.0  # seconds for an answer and for the next bytes: one silent server of each of four hosts is a minute
LONGEST = 1800.0  # seconds for one file
_IMAGES = ", ".join(
    f"application/vnd.{kind}+json"
    for kind in (
        "oci.image.index.v1",
        "oci.image.manifest.v1",
        "docker.distribution.manifest.list.v2",
        "docker.distribution.manifest.v2",
    )
)


class UnreachableError(MissingToolError):
    """A server does not answer at all, so that its other files need not be asked for."""


def address(url: str, mirror: str) -> str:
    """Return the address of a file: on its own host, by https only, or as HOST/PATH below the URL of a mirror."""
    rest = url.partition("://")[2]
    return f"{mirror.rstrip('/')}/{rest}" if mirror else f"https://{rest}"


def download(wanted: Download, name: str, program: Path, mirror: str = "") -> None:
    """Write an official program into the cache, whole or not at all; the caller has locked the engine.

    Args:
        program: Its path, `FOLDER/bin/NAME`.
        mirror: URL below which the files are; empty for their own hosts.

    Raises:
        MissingToolError: It cannot be fetched, or has another checksum.
    """
    folder = program.parent.parent
    try:
        with draft_folder(folder.parent, name) as scratch:
            draft = scratch / "result" / "bin" / program.name
            draft.parent.mkdir(parents=True)
            _fetch(wanted, draft, scratch / "file", mirror)
            draft.chmod(0o755)
            shutil.rmtree(folder, ignore_errors=True)  # exists only if the program in it was removed
            (scratch / "result").replace(folder)
    except OSError as error:
        raise MissingToolError(Problem(f"it cannot be written: {error.strerror}", folder.parent)) from error


def _fetch(wanted: Download, draft: Path, file: Path, mirror: str) -> None:
    if not wanted.member:
        _save(wanted.url, wanted.digest, draft, mirror)
        return
    is_image = wanted.url.startswith("oci://")
    for url, digest in _layers(wanted, file, mirror) if is_image else [(wanted.url, wanted.digest)]:
        _save(url, digest, file, mirror)
        if _extract(file, wanted.member, draft):
            return
    raise MissingToolError(f"{address(wanted.url, mirror)} has no file {wanted.member}")


def _layers(wanted: Download, file: Path, mirror: str) -> Iterator[tuple[str, str]]:
    """Return address and digest of an image's layers, the last first: it usually contains the program."""
    host, _, name = wanted.url.removeprefix("oci://").partition("/")
    base = f"https://{host}/v2/{name}"

    def image(digest: str) -> Any:
        _save(f"{base}/manifests/{digest}", digest, file, mirror)
        return json.loads(file.read_bytes())

    try:
        found = image(wanted.digest)
        if "manifests" in found:
            digests = {"{os}-{architecture}".format(**each["platform"]): each["digest"] for each in found["manifests"]}
            if system() not in digests:
                raise MissingToolError(f"{address(wanted.url, mirror)} has no image for {system()}")
            found = image(digests[system()])
        layers = [layer["digest"] for layer in reversed(found["layers"])]
    except (ValueError, KeyError, TypeError):
        raise MissingToolError(f"{address(wanted.url, mirror)} is not an image that chartgen can read") from None
    yield from ((f"{base}/blobs/{digest}", digest) for digest in layers)


def _extract(archive: Path, member: str, target: Path) -> bool:
    """Write one file of an archive, found by its exact name; report whether it is there."""
    try:
        with tarfile.open(archive) as tar:
            entry = next((each for each in tar if each.name.removeprefix("./") == member), None)
            content = tar.extractfile(entry) if entry and entry.isfile() and entry.size <= _LARGEST else None
            if content is None:
                return False
            with content, target.open("wb") as out:
                shutil.copyfileobj(content, out)
            return True
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise MissingToolError(f"the archive of {member} cannot be read: {error}") from None


def _save(url: str, digest: str, path: Path, mirror: str) -> None:
    """Write a file, whose checksum must be the given one, `sha256:` or `sha512:` before it.

    Raises:
        MissingToolError: The server does not answer, refuses, is too slow or ends too early, or the checksum differs.
    """
    place, (kind, _, expected) = address(url, mirror), digest.partition(":")
    try:
        found = hashlib.new(kind)
        with path.open("wb") as file:
            for chunk in _chunks(place):
                found.update(chunk)
                file.write(chunk)
    except HTTPError as error:
        raise MissingToolError(f"{place} cannot be fetched: {error.code} {_reason(error)}") from None
    except (OSError, HTTPException, ValueError) as error:
        failure = UnreachableError if isinstance(error, URLError | TimeoutError) else MissingToolError
        raise failure(f"{place} cannot be fetched: {_reason(error)}") from None
    if found.hexdigest() != expected:
        problem = f"{place} has the {kind} checksum {found.hexdigest()[:12]}..., not {expected[:12]}..."
        raise MissingToolError(Problem(problem, hint="it was changed, or is another release"))


def _chunks(place: str) -> Iterator[bytes]:
    end, done = time.monotonic() + LONGEST, 0
    request = Request(place, headers={"User-Agent": "chartgen", "Accept": f"{_IMAGES}, */*"})  # noqa: S310 of `address`
    with build_opener(_SameScheme).open(request, timeout=PATIENCE) as answer:
        total = int(answer.headers.get("Content-Length") or 0)
        while chunk := answer.read1(1 << 18):
            done += len(chunk)
            if done > _LARGEST or time.monotonic() > end:
                raise ValueError(f"it has more than {_LARGEST >> 20} MB, or takes more than {LONGEST:g} s")
            yield chunk
    if done < total:
        raise ValueError(f"it ends after {done} of {total} bytes")


class _SameScheme(HTTPRedirectHandler):
    """Follow redirects of one scheme only: never from https to another, nor from a mirror to a file."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        if urlsplit(newurl).scheme != urlsplit(req.full_url).scheme:
            raise ValueError(f"it redirects to {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _reason(error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    return (str(reason) or type(reason).__name__).splitlines()[0]  # urllib reports a circle of redirects in three
