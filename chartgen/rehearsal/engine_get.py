"""Get engines: what is there, else the official program, else a build."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from chartgen.errors import MissingToolError, Problem, UsageError
from chartgen.programs import Progress, variable
from chartgen.rehearsal.engine_build import build_engines
from chartgen.rehearsal.engines import Engine, engine, engines_dir, find_engine, require
from chartgen.rehearsal.folders import cache_lock

MIRROR = "CHARTGEN_ENGINES_MIRROR"
_UNKNOWN = "chartgen knows no checksum of an official program"


def get(names: Iterable[str], *, progress: Progress | None = None) -> dict[str, Path]:
    """Find engines, download those that are missing, and build those that cannot be downloaded.

    Returns:
        The program of each engine.

    Raises:
        UsageError: A name is unknown, or the mirror is not a URL.
        MissingToolError: An engine can be neither downloaded nor built; those that can be downloaded are there.
    """
    report = progress or (lambda _: None)
    wanted = list(names)
    if missing := [name for name in wanted if find_engine(name) is None]:
        _get(missing, _mirror(), report)
    return {name: require(name) for name in wanted}


def _mirror() -> str:
    """Return the value of the variable: a URL, `off`, or nothing."""
    value = os.environ.get(MIRROR, "")
    parts = urlsplit(value)
    if value not in ("", "off") and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username):
        hint = "set the URL of an HTTP server without a password in it, or `off`"
        raise UsageError(Problem(f"{MIRROR}={value} is not a mirror", hint=hint))
    return value


def _get(missing: list[str], mirror: str, report: Progress) -> None:
    silent: set[str] = set()
    reasons = {name: _download(engine(name), mirror, silent, report) for name in missing}
    left = [name for name, reason in reasons.items() if reason]
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
    from chartgen.rehearsal.engine_download import UnreachableError, address, download

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
