"""Download an engine's official program: a file, a member of an archive, or a file of a container image."""

from __future__ import annotations

import json
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chartgen.errors import MissingToolError, Problem
from chartgen.programs import Progress
from chartgen.rehearsal.engine_fetch import LARGEST, Source, manifest, save
from chartgen.rehearsal.engines import Download, system
from chartgen.rehearsal.folders import draft_folder

_IMAGES = ", ".join(
    f"application/vnd.{kind}+json"
    for kind in (
        "oci.image.index.v1",
        "oci.image.manifest.v1",
        "docker.distribution.manifest.list.v2",
        "docker.distribution.manifest.v2",
    )
)
# How a program of each system begins: its format, and where the header names the processor (e_machine of ELF, cputype
# of Mach-O).
_HEADERS = {
    "linux-amd64": (b"\x7fELF", 18, b"\x3e\x00"),
    "linux-arm64": (b"\x7fELF", 18, b"\xb7\x00"),
    "darwin-amd64": (b"\xcf\xfa\xed\xfe", 4, b"\x07\x00\x00\x01"),
    "darwin-arm64": (b"\xcf\xfa\xed\xfe", 4, b"\x0c\x00\x00\x01"),
}


def download(wanted: Download, name: str, program: Path, source: Source, say: Progress) -> None:
    """Write an official program into the cache, whole or not at all; the caller has locked the engine.

    Args:
        wanted: The program.
        name: Name of the engine.
        program: Its path, `FOLDER/bin/NAME`.
        source: Where it comes from.
        say: Receives a line regularly.

    Raises:
        MissingToolError: It cannot be fetched, has another checksum, or is not for this system.
    """
    folder = program.parent.parent
    try:
        with draft_folder(folder.parent, name) as scratch:
            draft = scratch / "result" / "bin" / program.name
            draft.parent.mkdir(parents=True)
            _fetch(wanted, draft, scratch / "file", source, say)
            _check_system(draft, wanted)
            draft.chmod(0o755)
            shutil.rmtree(folder, ignore_errors=True)  # exists only if the program in it was removed
            (scratch / "result").replace(folder)
    except OSError as error:
        raise MissingToolError(Problem(f"it cannot be written: {error.strerror}", folder.parent)) from error


def _fetch(wanted: Download, draft: Path, file: Path, source: Source, say: Progress) -> None:
    if not wanted.member:
        save(wanted.url, wanted.digest, draft, source, say)
        return
    is_image = wanted.url.startswith("oci://")
    for url, digest in _layers(wanted, source) if is_image else [(wanted.url, wanted.digest)]:
        save(url, digest, file, source, say)
        if _extract(file, wanted.member, draft):
            return
    raise MissingToolError(f"{source.address(wanted.url)} has no file {wanted.member}")


def _layers(wanted: Download, source: Source) -> Iterator[tuple[str, str]]:
    """Return address and digest of an image's layers, the last first: it usually contains the program."""
    host, _, name = wanted.url.removeprefix("oci://").partition("/")
    base = f"https://{host}/v2/{name}"
    try:
        image = _image(base, wanted.digest, source)
        if "manifests" in image:
            digests = {"{os}-{architecture}".format(**each["platform"]): each["digest"] for each in image["manifests"]}
            if system() not in digests:
                raise MissingToolError(f"{source.address(wanted.url)} has no image for {system()}")
            image = _image(base, digests[system()], source)
        layers = [each["digest"] for each in reversed(image["layers"])]
    except (ValueError, KeyError, TypeError):
        raise MissingToolError(f"{source.address(wanted.url)} is not an image that chartgen can read") from None
    yield from ((f"{base}/blobs/{digest}", digest) for digest in layers)


def _image(base: str, digest: str, source: Source) -> Any:
    return json.loads(manifest(f"{base}/manifests/{digest}", digest, source, _IMAGES))


def _extract(archive: Path, member: str, target: Path) -> bool:
    """Write one file of an archive, found by its exact name; report whether it is there."""
    try:
        with tarfile.open(archive) as tar:
            entry = next((each for each in tar if each.name.removeprefix("./") == member), None)
            content = tar.extractfile(entry) if entry and entry.isfile() and entry.size <= LARGEST else None
            if content is None:
                return False
            with content, target.open("wb") as out:
                shutil.copyfileobj(content, out)
            return True
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise MissingToolError(f"the archive of {member} cannot be read: {error}") from None


def _check_system(program: Path, wanted: Download) -> None:
    magic, place, machine = _HEADERS[system()]
    with program.open("rb") as file:
        header = file.read(32)
    if not header.startswith(magic) or header[place : place + len(machine)] != machine:
        raise MissingToolError(f"{wanted.url} is not a program for {system()}")
