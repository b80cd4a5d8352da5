"""A folder of code as one text file of a run: a program that unpacks the folder and starts its entry."""

from __future__ import annotations

import base64
import gzip
import io
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from chartgen.errors import Problem, UsageError
from chartgen.masking import tokens_in

# Helm 4.3.1 keeps a release in a Secret, at most 1 MiB (Kubernetes v1.37, MaxSecretSize): gzip, then base64, of the
# values and of the manifests, each with this text.
LARGEST = 400_000
_MOST = 50_000_000  # bytes of files that are read at all: text shrinks to a quarter
_ENTRIES = ("__main__.py", "main.py", "train.py")
_LEFT_OUT = ("__pycache__", "node_modules")
_PROGRAM = '''\
# Code of the folder {name!r}, packed by chartgen: sha256 {digest}
import base64, gzip, io, os, sys, tarfile, tempfile

folder = tempfile.mkdtemp(prefix="code-")
with tarfile.open(fileobj=io.BytesIO(gzip.decompress(base64.b64decode("""
{packed}""")))) as archive:
    archive.extractall(folder, **({{"filter": "data"}} if hasattr(tarfile, "data_filter") else {{}}))
sys.stdout.flush()
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
os.execv(sys.executable, [sys.executable, "-u", os.path.join(folder, {entry!r}), *sys.argv[1:]])
'''


def packed_code(folder: Path, program: Path | None = None) -> str:
    """Return the program that a folder's files make; equal files make an equal one.

    Args:
        folder: The folder; hidden files and caches are left out.
        program: The file in it that starts; default: __main__.py, main.py or train.py.

    Raises:
        UsageError: The folder or its program is missing; it is too large, or has a link to a folder or out of it.
    """
    if not folder.is_dir():
        raise UsageError(Problem("is not a folder", folder, hint="give the folder of your code"))
    root = folder.resolve()
    paths = [path for path in sorted(folder.rglob("*")) if _counts(path.relative_to(folder))]
    files = [path for path in paths if path.is_file()]
    links = {path: "a link to a folder or to nothing" for path in paths if path.is_symlink() and path not in files}
    links |= {path: "a link out of the folder of code" for path in files if not path.resolve().is_relative_to(root)}
    if links:
        raise UsageError(Problem(f"is {what}", path, hint="copy what it leads to") for path, what in links.items())
    names = [path.relative_to(folder).as_posix() for path in files]
    wanted = {program.resolve(), (root / program).resolve()} if program else {root / name for name in _ENTRIES}
    entry = next((name for name, path in zip(names, files, strict=True) if path.resolve() in wanted), "")
    if not entry:
        lacking = f"does not contain {program}" if program else f"has none of {', '.join(_ENTRIES)}"
        raise UsageError(Problem(lacking, folder, hint="name the file to start with --program-file"))
    size = sum(path.stat().st_size for path in files)
    if size > _MOST:
        raise _too_large(folder, entry, f"{size:,} bytes")
    if found := [*_secrets(files)]:
        raise UsageError(found)
    content = gzip.compress(_archive(dict(zip(names, files, strict=True))), mtime=0)
    packed = base64.encodebytes(content).decode()
    if len(packed) > LARGEST:
        raise _too_large(folder, entry, f"{len(packed):,} bytes packed")
    digest = sha256(content).hexdigest()[:16]
    return _PROGRAM.format(name=root.name, digest=digest, packed=packed, entry=entry)


def _too_large(folder: Path, entry: str, size: str) -> UsageError:
    clouds = f"gcloud storage cp -r {folder} gs://BUCKET/code, aws s3 cp --recursive {folder} s3://BUCKET/code"
    start = f"launchers.torchrun.program=/data/code/{entry}"
    hint = f"upload it: {clouds}, or kubectl cp {folder} POD:/data/code; then {start}"
    return UsageError(Problem(f"is {size}, and a release has room for {LARGEST:,} packed", folder, hint=hint))


def _secrets(files: list[Path]) -> Iterator[Problem]:
    """Find tokens, which no check of values sees once they are packed."""
    for path in files:
        text = path.read_bytes().decode("latin-1")
        for kind, place in tokens_in(text):
            line, hint = text.count("\n", 0, place) + 1, "put it into a Secret, and use secretEnv"
            yield Problem(f"contains {kind}, which would be in the release", path, line, hint=hint)


def _counts(path: Path) -> bool:
    return not any(part.startswith(".") or part in _LEFT_OUT for part in path.parts) and path.suffix != ".pyc"


def _archive(files: dict[str, Path]) -> bytes:
    """Return an archive without owners and times."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, path in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = path.stat().st_size, 0o755 if path.stat().st_mode & 0o100 else 0o644
            with path.open("rb") as content:
                archive.addfile(entry, content)
    return out.getvalue()
