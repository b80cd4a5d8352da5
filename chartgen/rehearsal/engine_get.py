"""Get engines: what is there, else the official program, else a build; downloads run beside the builds."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chartgen.errors import MissingToolError, Problem, UsageError
from chartgen.programs import Progress, variable
from chartgen.rehearsal.engine_build import build
from chartgen.rehearsal.engines import Engine, engine, engines_dir, find, require
from chartgen.rehearsal.folders import cache_lock

if TYPE_CHECKING:  # it loads urllib
    from chartgen.rehearsal.engine_fetch import Source

MIRROR = "CHARTGEN_ENGINES_MIRROR"
_UNKNOWN = "chartgen knows no checksum of an official program"
_AT_ONCE = 4  # downloads; a fifth would only share the line


def get(names: Iterable[str], *, progress: Progress | None = None) -> dict[str, Path]:
    """Find engines, download those that are missing, and build those that cannot be downloaded.

    Args:
        names: Engine names.
        progress: Receives a line for each step and each problem, also from other threads.

    Returns:
        The program of each engine.

    Raises:
        UsageError: A name is unknown, or the mirror is not a URL.
        MissingToolError: An engine can be neither downloaded nor built; the others are there.
    """
    say = progress or (lambda _: None)
    wanted = list(names)
    missing = [name for name in wanted if find(name) is None]
    if missing and (mirror := _mirror()) != "off":
        _get(missing, mirror, say)
    elif missing:
        build(missing, progress=say)
    return {name: require(name) for name in wanted}


def _mirror() -> str:
    """Return the value of the variable: a URL, `off`, or nothing."""
    value = os.environ.get(MIRROR, "")
    parts = urlsplit(value)
    if value not in ("", "off") and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username):
        hint = "set the URL of an HTTP server without a password in it, or `off`"
        raise UsageError(Problem(f"{MIRROR}={value} is not a mirror", hint=hint))
    return value


def _get(missing: list[str], mirror: str, say: Progress) -> None:
    from chartgen.rehearsal.engine_fetch import Source

    source = Source(mirror)
    reasons = _reasons(missing, source)
    for reason in sorted({reason for reason in reasons.values() if reason}):
        say(f"not downloaded: {', '.join(name for name in missing if reasons.get(name) == reason)}: {reason}")
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            runs = {name: pool.submit(_download, engine(name), source, say) for name in missing if not reasons[name]}
            problems = _build([name for name in missing if reasons[name]], say)
            reasons |= {name: run.result() for name, run in runs.items()}
        except BaseException:
            source.stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    problems += _build([name for name in runs if reasons[name]], say)
    if problems:
        problems += [_lacking(engine(name), reasons[name]) for name in missing if find(name) is None]
        raise MissingToolError(dict.fromkeys(problems))


def _lacking(wanted: Engine, reason: str) -> Problem:
    hint = "" if wanted.edit else f"or set {variable(wanted.name)} to your own"
    return Problem(f"{wanted.name} {wanted.version} cannot be downloaded: {reason}", hint=hint)


def _reasons(names: list[str], source: Source) -> dict[str, str]:
    """Return why each engine cannot be downloaded; empty where it can."""
    from chartgen.rehearsal.engine_fetch import unreachable

    downloads = {name: engine(name).download for name in names}
    servers = {name: source.server(each.url) for name, each in downloads.items() if each}
    silent = unreachable(servers.values())
    reasons = dict.fromkeys(names, _UNKNOWN)
    for name, server in servers.items():
        reasons[name] = f"{server} cannot be reached: {silent[server]}" if server in silent else ""
    return reasons


def _download(wanted: Engine, source: Source, say: Progress) -> str:
    """Download one engine, unless another process does; return why that failed."""
    from chartgen.rehearsal.engine_download import download

    if not wanted.download or not wanted.downloaded:
        return _UNKNOWN
    title = f"{wanted.name} {wanted.download.version}"
    try:
        with cache_lock(engines_dir(), wanted.name, lambda: say(f"{title}: waiting for another chartgen")):
            if not wanted.program.is_file():  # another process may have got it during the wait
                say(f"{title}: downloading from {source.server(wanted.download.url)}")
                download(wanted.download, wanted.name, wanted.downloaded, source, lambda line: say(f"{title}: {line}"))
                say(f"{title}: downloaded")
    except MissingToolError as error:
        say(f"{title}: not downloaded: {error}")
        return str(error)
    return ""


def _build(names: list[str], say: Progress) -> list[Problem]:
    """Build engines; return the problems."""
    try:
        build(names, progress=say)
    except MissingToolError as error:
        return error.problems
    return []
