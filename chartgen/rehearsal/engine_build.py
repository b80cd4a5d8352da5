"""Build engines from the Go module proxy into the user's cache.

An engine is built in an empty module that requires it ("tools module"): `go install path@version` rejects modules with
replace directives and needs version lists that are not available for all modules.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from chartgen.errors import MissingToolError, Problem
from chartgen.helm.program import parse_version
from chartgen.programs import Progress, on_path
from chartgen.rehearsal.engines import Engine, engine, engines_dir, find_engine
from chartgen.rehearsal.folders import cache_lock, draft_program

GO_MINIMUM = (1, 26, 0)  # the go directives of Kubernetes 1.37, Kueue 0.19 and Helm 4.3
_TOOLCHAINS = (1, 21, 0)  # since this version Go fetches a newer toolchain itself, unless GOTOOLCHAIN forbids it
_REPLACE = re.compile(r"^(?:replace)?\s*(\S.*?)\s+=>\s+(\S.*?)\s*(?://.*)?$", re.MULTILINE)
_SUMS = Path(__file__).parent.parent / "data" / "go.sum"
_HEARTBEAT = 15.0  # seconds between progress lines; the longest build takes three minutes
_UNREACHABLE = (
    "dial tcp",
    "proxyconnect",
    "i/o timeout",
    "404 Not Found",
    "410 Gone",
    "403 Forbidden",
    "module lookup disabled",
)


def build_engines(names: Iterable[str], *, progress: Progress | None = None) -> dict[str, Path]:
    """Find engines, and build those that are missing.

    Args:
        progress: Receives lines at the start and end of each build, and regularly in between.

    Returns:
        The program of each engine.

    Raises:
        UsageError: A name is unknown.
        MissingToolError: Go is missing or too old, a module cannot be fetched, or a build failed.
    """
    report = progress or (lambda _: None)
    found = {name: find_engine(name) for name in names}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        go = find_go()
        with ended_by_sigterm():
            for number, name in enumerate(missing, 1):
                found[name] = _build_locked(go, engine(name), f"({number} of {len(missing)})", report)
    return {name: path for name, path in found.items() if path is not None}


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end Go and remove a draft, as Ctrl-C does; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _build_locked(go: str, wanted: Engine, position: str, report: Progress) -> Path:
    def wait() -> None:
        report(f"{wanted.name} {wanted.version}: waiting for another chartgen, which builds it")

    with cache_lock(engines_dir(), wanted.name, wait):
        if not wanted.program.is_file():  # another process may have built it during the wait
            started = time.monotonic()
            report(f"{wanted.name} {wanted.version}: building {position}")
            _build(go, wanted, report)
            report(f"{wanted.name} {wanted.version}: built in {time.monotonic() - started:.0f} s")
    return wanted.program


def _build(go: str, wanted: Engine, report: Progress) -> None:
    with draft_program(wanted.built, wanted.name) as (draft, scratch):
        work = scratch / "work"
        write_module(go, wanted, work, sums())
        flags = " ".join(("-s -w", *wanted.ldflags))
        package = "/".join(filter(None, (wanted.module, wanted.package)))
        go_run([go, "build", "-trimpath", "-ldflags", flags, "-o", str(draft), package], work, wanted, report)
        _check_sums(wanted, work)


def sums() -> str:
    """Return the checksums of all modules of the engines, for all systems; `make sums` writes them."""
    return _SUMS.read_text("utf-8")


def write_module(go: str, wanted: Engine, work: Path, known: str) -> Path:
    """Write the tools module of an engine, and return the folder of the engine's source.

    Args:
        go: The go command.
        work: The module's folder, which is created.
        known: Its go.sum. Go checks other modules with the checksum database, if the user has one.

    Raises:
        MissingToolError: A module cannot be fetched, or does not match its checksum.
    """
    work.mkdir()
    (work / "go.sum").write_text(known, "utf-8")
    module = f"module chartgen.invalid/engines\n\ngo 1.26.0\n\nrequire {wanted.module} {wanted.version}\n"
    (work / "go.mod").write_text(module, "utf-8")
    answer = go_run([go, "mod", "download", "-json", f"{wanted.module}@{wanted.version}"], work, wanted)
    source = Path(json.loads(answer)["Dir"])
    if wanted.staging:
        module += _replaces(source, wanted.staging)
    if wanted.edit:
        _edit(wanted, source, work / "edited")
        module += f"replace {wanted.module} => ./edited\n"
    (work / "go.mod").write_text(module, "utf-8")
    if wanted.copy_sum:
        with (work / "go.sum").open("a", encoding="utf-8") as file:
            file.write((source / "go.sum").read_text("utf-8"))
    return source


def _check_sums(wanted: Engine, work: Path) -> None:
    """Reject a build that used a module without a known checksum, which Go has added; it has not run yet."""
    unknown = sorted(set((work / "go.sum").read_text("utf-8").splitlines()) - set(sums().splitlines()))
    if unknown:
        module = " ".join(unknown[0].split()[:2])
        hint = "unset replacements of modules in `go env`, or put the program on PATH"
        raise MissingToolError(Problem(f"{wanted.name} is not built: {module} has no known checksum", hint=hint))


def _replaces(source: Path, staging: str) -> str:
    """Return the replace lines of a module, with a version instead of each folder of the module's repository."""
    found = _REPLACE.findall((source / "go.mod").read_text("utf-8"))
    pairs = ((old, f"{old} {staging}" if new.startswith("./staging/") else new) for old, new in found)
    return "".join(f"replace {old} => {new}\n" for old, new in pairs)


def _edit(wanted: Engine, source: Path, copy: Path) -> None:
    """Copy a module and replace texts in it; each must occur once."""
    shutil.copytree(source, copy, copy_function=shutil.copyfile)
    for folder in (copy, *filter(Path.is_dir, copy.rglob("*"))):
        folder.chmod(0o755)  # copies of the module cache are read-only, but this folder is removed later
    for name, texts in wanted.edit.items():
        content = (copy / name).read_text("utf-8")
        for old, new in texts.items():
            if content.count(old) != 1:
                raise MissingToolError(
                    f"{wanted.name} cannot be built: {name} of {wanted.version} has no single {old!r}"
                )
            content = content.replace(old, new)
        (copy / name).write_text(content, "utf-8")


def find_go() -> str:
    """Return a Go that can build the engines; the user's Go settings stay unchanged."""
    go = on_path("go")
    if go is None:
        hint = "install Go 1.26 or newer, or put the missing programs on PATH"
        raise MissingToolError(Problem("cannot build the engines: Go is not installed", hint=hint))
    answer = subprocess.run([go, "env", "GOVERSION", "GOTOOLCHAIN"], capture_output=True, encoding="utf-8", check=False)
    version, toolchain = parse_version(answer.stdout.removeprefix("go")), answer.stdout.partition("\n")[2].strip()
    fetches = version is not None and version >= _TOOLCHAINS and toolchain.startswith(("auto", "path+auto"))
    if version is None or (version < GO_MINIMUM and not fetches):
        found = "no version" if version is None else ".".join(map(str, version))
        raise MissingToolError(Problem(f"{go} is too old ({found})", hint="install Go 1.26 or newer"))
    return str(go)


def go_run(
    argv: Sequence[str], work: Path, wanted: Engine, report: Progress | None = None, system: tuple[str, str] = ("", "")
) -> str:
    """Run one go command in the tools module and return its output.

    Args:
        report: Receives a line regularly.
        system: GOOS and GOARCH; empty for this machine's.

    Raises:
        MissingToolError: The command failed.
    """
    settings = {"CGO_ENABLED": "0", "GO111MODULE": "on", "GOWORK": "off", "GOOS": system[0], "GOARCH": system[1]}
    flags = f"{os.environ.get('GOFLAGS', '')} -mod=mod".strip()  # the last -mod overrides a user's -mod=vendor
    env = {**os.environ, **settings, "GOFLAGS": flags}
    with (work / "stdout").open("w+b") as out, (work / "stderr").open("w+b") as err:
        process = subprocess.Popen(argv, cwd=work, env=env, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        try:
            code = _wait(process, wanted, report)
        finally:
            if process.poll() is None:  # Ctrl-C: go removes its temporary files when it is terminated
                process.send_signal(signal.SIGINT)
                process.wait()
        output, errors = ((work / name).read_text("utf-8", "replace") for name in ("stdout", "stderr"))
    if code:
        raise MissingToolError(_failure(wanted, output + errors))
    return output


def _wait(process: subprocess.Popen[bytes], wanted: Engine, report: Progress | None) -> int:
    started = time.monotonic()
    while True:
        try:
            return process.wait(timeout=_HEARTBEAT)
        except subprocess.TimeoutExpired:
            if report:
                report(f"{wanted.name} {wanted.version}: {time.monotonic() - started:.0f} s")


def _failure(wanted: Engine, output: str) -> Problem:
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("go: downloading")]
    hint = f"output of Go: {' | '.join(line.strip() for line in lines[-8:])}"
    if "no space left on device" in output:
        return Problem(f"{wanted.name} cannot be built: the disk is full", hint=f"free about 4 GB; {hint}")
    if "checksum mismatch" in output:
        problem = f"{wanted.name} cannot be built: a Go module has another checksum than the one in chartgen"
        return Problem(problem, hint=f"it was changed in transit; check `go env GOPROXY`; {hint}")
    if any(sign in output for sign in _UNREACHABLE):
        problem = f"{wanted.name} cannot be built: a Go module cannot be fetched"
        return Problem(problem, hint=f"check the network and `go env GOPROXY GOSUMDB`; {hint}")
    return Problem(f"{wanted.name} {wanted.version} cannot be built", hint=hint)
