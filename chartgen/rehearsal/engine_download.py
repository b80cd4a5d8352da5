"""Download official programs of engines: a file, a member of an archive, or a file of an image."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from chartgen.errors import MissingToolError, Problem, UsageError
from chartgen.programs import Progress, variable
from chartgen.rehearsal.engine_build import build_engines, ended_by_sigterm
from chartgen.rehearsal.engines import Download, Engine, engine, engines_dir, find_engine, require, system
from chartgen.rehearsal.folders import cache_lock, draft_program

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
    with draft_program(program, name) as (draft, scratch):
        _fetch(wanted, draft, scratch / "file", mirror)
        draft.chmod(0o755)


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
        fp.close()  # its body, of any length, would be read into the memory
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _reason(error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    return (str(reason) or type(reason).__name__).splitlines()[0]  # urllib reports a circle of redirects in three


MayBuild: TypeAlias = Callable[[list[str]], bool]
MIRROR = "CHARTGEN_ENGINES_MIRROR"
_UNKNOWN = "chartgen knows no checksum of an official program"


def get(
    names: Iterable[str], *, progress: Progress | None = None, may_build: MayBuild | None = None
) -> dict[str, Path]:
    """Find engines, download those that are missing, and build those that cannot be downloaded.

    Args:
        may_build: Receives the names of those that must be built, and returns whether to; default: they are built.

    Returns:
        The program of each engine.

    Raises:
        UsageError: A name is unknown, or the mirror is not a URL.
        MissingToolError: An engine can be neither downloaded nor built; those that can be downloaded are there.
    """
    report = progress or (lambda _: None)
    wanted = list(names)
    if missing := [name for name in wanted if find_engine(name) is None]:
        mirror = _mirror()
        with ended_by_sigterm():
            _get(missing, mirror, report, may_build)
    return {name: require(name) for name in wanted}


def _mirror() -> str:
    """Return the value of the variable: a URL, `off`, or nothing."""
    value = os.environ.get(MIRROR, "")
    parts = urlsplit(value)
    if value not in ("", "off") and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username):
        hint = "set the URL of an HTTP server without a password in it, or `off`"
        raise UsageError(Problem(f"{MIRROR}={value} is not a mirror", hint=hint))
    return value


def _get(missing: list[str], mirror: str, report: Progress, may_build: MayBuild | None) -> None:
    silent: set[str] = set()
    reasons = {name: _download(engine(name), mirror, silent, report) for name in missing}
    left = [name for name, reason in reasons.items() if reason]
    if left and may_build and not may_build(left):
        hint = "`chartgen engines get` builds them, once"
        raise MissingToolError(Problem(f"{', '.join(left)}: not here, and to be built", hint=hint))
    try:
        build_engines(left, progress=report)
    except MissingToolError as error:
        lacking = [_lacking(engine(name), reasons[name]) for name in left if find_engine(name) is None]
        raise MissingToolError(dict.fromkeys([*error.problems, *lacking])) from None


def _lacking(wanted: Engine, reason: str) -> Problem:
    hint = "" if wanted.edit else f"or set {variable(wanted.name)} to your own"
    return Problem(f"{wanted.name} {wanted.version} cannot be downloaded: {reason}", hint=hint)


def _download(wanted: Engine, mirror: str, silent: set[str], report: Progress) -> str:
    """Download one engine, unless another process does; return why that failed.

    Args:
        mirror: URL of a mirror, `off`, or nothing.
        silent: Servers that did not answer, which are not asked again.
    """
    if not wanted.download or not wanted.downloaded or mirror == "off":
        return f"{MIRROR} is off" if mirror == "off" else _UNKNOWN
    title = f"{wanted.name} {wanted.download.version}"
    server = "/".join(address(wanted.download.url, mirror).split("/")[:3])
    if server in silent:
        return f"{server}/ does not answer"
    try:
        with cache_lock(engines_dir(), wanted.name, lambda: report(f"{title}: waiting for another chartgen")):
            if not wanted.program.is_file():  # another process may have got it during the wait
                report(f"{title}: downloading from {server}/")
                download(wanted.download, wanted.name, wanted.downloaded, mirror)
                report(f"{title}: downloaded")
    except MissingToolError as error:
        report(f"{title}: not downloaded: {error}")
        if isinstance(error, UnreachableError):
            silent.add(server)
        return str(error)
    return ""
