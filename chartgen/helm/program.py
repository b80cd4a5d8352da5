"""Find Helm, check its version, run it through pyhelm3, and reduce its errors to the lines that a user can act on.

Only pyhelm3's `Command.run` is used. Its `Client` rejects every Helm that was built without release flags (they report
`v4.3`, not strict SemVer) and concatenates lists where Helm replaces them. It lacks `helm lint`, the plain text of
`helm template`, and an install that rejects an existing release (pyhelm3 0.5.8, client.py and command.py).
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from chartgen.cached import read_cached, write_cached
from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.programs import find_tool, on_path

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

    from pyhelm3.command import Command  # type: ignore[import-untyped]


# Only the start and the end of a very long error stream are read: the cause is in the last line.
TELLING = 100_000
UNREACHABLE = re.compile(
    r"cluster unreachable|connection refused|no such host|i/o timeout|network is unreachable|no configuration has been"
    r"|context [^\n]{0,300} does not exist|certificate signed by unknown|tls handshake|etcdserver",
    re.IGNORECASE,
)
# Prefixes that Helm puts before the relevant sentence.
PREFIX = re.compile(
    r"^(Error: |(INSTALLATION|UPGRADE) FAILED: |uninstall: |cluster reachability check failed: "
    r"|failed to render chart: |rendering template: )+"
)
_CHART_FAIL = re.compile(r"^execution error at \((?P<at>[^()]+)\):\s*(?P<text>.*)", re.DOTALL)
_TEMPLATE_PLACE = re.compile(r"^(?P<path>\S+?\.(?:yaml|yml|tpl|txt)):(?P<line>\d+)(?::(?P<column>\d+))?:?$")
_PARSE_ERROR = re.compile(r"^parse error at \((?P<at>[^()]+)\): (?P<text>.*)")
_TEMPLATE_LINE = re.compile(r"^template: (?P<at>\S+?:\d+(?::\d+)?): (?P<text>.*)", re.DOTALL)  # Helm 3: one long line
# Helm 3 writes all frames into this line, each with its place.
_FRAME = re.compile(r"(?:^|: )template: (?P<at>[^\s:]{1,300}:\d{1,9}(?::\d{1,9})?): ")
_YAML_ERROR = re.compile(r"^YAML parse error on (?P<path>[^\s:]+): (?P<text>.*)", re.DOTALL)
_SCHEMA_ERROR = re.compile(r"^\s*- at '(?P<pointer>[^']*)': (?P<text>.*)")
_NOISE = re.compile(r"^(level=|Use --debug flag|WARNING: |I\d{4} |W\d{4} |coalesce\.go|\s*$)")


class HelmError(ChartgenError):
    """Helm failed: the problems are the useful lines of its output; `stdout` is where `helm lint` reports."""

    def __init__(self, stderr: str, stdout: str = "") -> None:
        self.stderr, self.stdout = stderr, stdout
        super().__init__(explain_helm(stderr) or [Problem("helm failed without a message")])


def explain_helm(stderr: str) -> list[Problem]:
    """Reduce Helm's error output to one problem per fault."""
    lines = [line.rstrip() for line in stderr.splitlines() if not _NOISE.match(line)]
    if not lines:
        lines = [line for line in stderr.splitlines() if line.strip()][-1:]
    text = PREFIX.sub("", "\n".join(lines))
    if "meet the specifications of the schema" in text:
        return _schema_problems(text)
    if match := _CHART_FAIL.match(text):
        return [Problem(line.strip()) for line in match["text"].splitlines() if line.strip()]
    if match := _YAML_ERROR.match(text):
        return [Problem(" ".join(match["text"].split()), match["path"])]
    if match := _PARSE_ERROR.match(text) or _TEMPLATE_LINE.match(text):
        *trail, inner = [frame["at"] for frame in _FRAME.finditer(text)] or [match["at"]]
        return [_placed(inner, " ".join(match["text"].split()), trail)]
    return [_template_problem(text)] if text else []


def bounded(stream: bytes) -> bytes:
    """Return the start and the end of a stream that is too long to search."""
    return stream if len(stream) <= 2 * TELLING else stream[:TELLING] + b"\n" + stream[-TELLING:]


def _template_problem(text: str) -> Problem:
    """Join the frames of a Go template error: the innermost place, then the cause, which is last."""
    places = [match for line in text.splitlines() if (match := _TEMPLATE_PLACE.match(line.strip()))]
    if not places:
        return Problem(" ".join(text.split()))
    cause = " ".join(line.strip() for line in text.splitlines()[-2:])
    *trail, inner = [place[0].rstrip(":") for place in places]
    return _placed(inner, cause, trail)


def _placed(place: str, message: str, trail: Sequence[str] = ()) -> Problem:
    path, *numbers = place.split(":")
    line, column = ([int(number) for number in numbers if number.isdecimal()] + [0, 0])[:2]
    return Problem(message, path, line, column, trail=tuple(trail))


def _schema_problems(text: str) -> list[Problem]:
    problems = []
    for line in text.splitlines():
        if match := _SCHEMA_ERROR.match(line):
            keys = match["pointer"].strip("/").replace("/", ".")
            problems.append(Problem(f"{keys}: {match['text']}" if keys else match["text"]))
    return problems or [Problem(" ".join(text.split()))]


def unreachable_reason(stderr: str, match: re.Match[str]) -> str:
    """Return the reason why a cluster is unreachable."""
    line = next(line for line in reversed(stderr.splitlines()) if match[0] in line)
    cause = line.rpartition("unreachable: ")[2].rpartition('msg="')[2]
    cause = " ".join(PREFIX.sub("", cause).split())
    return f"the Kubernetes cluster cannot be reached: {cause}; check the kubeconfig and its current context"


# The oldest Helm with the `--output json`, schema validator and job hooks that the charts are tested with.
MINIMUM_VERSION = (3, 18)
_TOO_NEW = (5,)
_VERSIONS = "helm-versions"  # in the cache
# Seconds for a render; a chart of chartgen takes 0.1. Templates can loop for hours without filling memory.
RENDER_LIMIT = 60.0
# Helm ends before Go's garbage collector earns its time: without it, a render takes half of the processor time. From
# 1 GiB on, it collects.
_GO = {"GOGC": "off", "GOMEMLIMIT": "1GiB"}
_AS_WORDS = [*(f"{name}={value}" for name, value in _GO.items()), "exec", "/bin/sh", "-c"]
_AS_WORDS += ['echo $$ >"$0"; ulimit -v "$1" 2>/dev/null; shift; exec "$@"']
CLUSTER_LIMIT, CLUSTER_MEMORY = 3600.0, 8 << 20  # seconds, KiB: the server of a cluster may never end its answer
# Helm gets this missing folder instead of the user's folders when it does not need a cluster.
_NOWHERE = "/nonexistent"
_ALONE = {"HOME": _NOWHERE, "KUBECONFIG": _NOWHERE, **_GO} | {
    f"HELM_{what}_HOME": _NOWHERE for what in ("CACHE", "CONFIG", "DATA")
}
# A second safeguard after the check of schemas for references: HTTP requests of Helm go to a port without a server.
_ALONE |= {f"{what}_PROXY": "http://127.0.0.1:0" for what in ("HTTP", "HTTPS")}


@dataclass(frozen=True)
class Helm:
    """A Helm program of a known version, and its cluster."""

    executable: Path
    # Major, minor and patch; a build without release flags does not report a patch, which counts as 0
    version: tuple[int, int, int]
    kubeconfig: Path | None = None  # the kubeconfig file; None for Helm's own choice
    context: str | None = None

    def run(self, arguments: Sequence[str], stdin: str | None = None) -> str:
        """Run Helm and return its output.

        Args:
            stdin: Text for its input, such as values for `--values -`.

        Raises:
            MissingToolError: The cluster cannot be reached.
            HelmError: Helm failed for another reason.
        """
        from tempfile import NamedTemporaryFile
        from threading import Timer

        pyhelm3 = load_runner()
        _silence(pyhelm3.__name__)
        # Words for the shell that pyhelm3 starts: it takes no environment, and a cancelled command terminates only the
        # shell, which `exec` replaces with Helm.
        command = pyhelm3.Command(executable=_AS_WORDS[0], kubeconfig=self.kubeconfig, kubecontext=self.context)
        note = NamedTemporaryFile("r")  # noqa: SIM115
        timer = Timer(CLUSTER_LIMIT, lambda: os.kill(int(note.read()), 9))
        timer.start()
        words = [*_AS_WORDS[1:], note.name, str(CLUSTER_MEMORY), str(self.executable), *arguments]
        try:
            return _wait(command, words, stdin)
        except pyhelm3.errors.Error as error:
            stderr = error.stderr.decode(errors="replace")
            if error.returncode < 0 or "fatal error: " in stderr[:TELLING]:  # of the Go runtime; a panic is a defect
                raise HelmError(f"helm {arguments[0]} was ended: it took more memory or time than it may") from None
            # A webhook that does not answer is a fault inside a cluster that is reachable.
            if (match := UNREACHABLE.search(stderr)) and "webhook" not in stderr:
                raise MissingToolError(unreachable_reason(stderr, match)) from None
            raise HelmError(stderr, error.stdout.decode(errors="replace")) from None
        finally:
            timer.cancel()
            note.close()

    def render(self, arguments: Sequence[str], stdin: str) -> str:
        """Run a Helm command without a cluster, and end it when it takes too long.

        This does not use pyhelm3: a render ignores the signal that it sends, and its import takes longer than a render.
        Charts may be untrusted, so Helm does not get the user's kubeconfig, home, plugins or proxy.

        Args:
            arguments: The command and its arguments, without the program; paths follow `--`.

        Raises:
            HelmError: Helm failed, or took too long.
        """
        ran = self._run_alone(arguments, RENDER_LIMIT, input=stdin.encode(), env=_ALONE)
        if ran is None:
            raise HelmError(f"helm {arguments[0]} did not end within {RENDER_LIMIT:g} s")
        stdout, stderr = ran.stdout.decode(errors="replace"), bounded(ran.stderr).decode(errors="replace")
        if ran.returncode < 0 or "cannot allocate memory" in stderr[:TELLING]:
            raise HelmError(f"helm {arguments[0]} was ended: it took more memory or processor time than it may")
        if ran.returncode:
            raise HelmError(stderr, stdout)
        return stdout

    def pull(self, arguments: Sequence[str], limit: float, largest: int) -> None:
        """Run `helm pull` with the user's environment, and so with the user's registry logins.

        While Helm runs, the size limit of files applies to this process, too.

        Args:
            arguments: Flags, `--`, and the chart's address.
            limit: Seconds.
            largest: Bytes of the archive.

        Raises:
            MissingToolError: The server cannot be reached.
            HelmError: Helm failed for another reason, or took too long.
        """
        import resource

        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        bound = min(each for each in (largest, *before) if each != resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bound, before[1]))
        try:
            ran = self._run_alone(["pull", *arguments], limit, input=b"")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        if ran is None:
            raise HelmError(f"{arguments[-1]} was not fetched within {limit:g} s")
        stderr = bounded(ran.stderr).decode(errors="replace")
        if ran.returncode and UNREACHABLE.search(stderr):
            raise MissingToolError(f"{arguments[-1]} cannot be reached: {' '.join(PREFIX.sub('', stderr).split())}")
        if ran.returncode:
            raise HelmError(stderr or f"helm pull ended with {ran.returncode}")

    def _run_alone(
        self, arguments: Sequence[str], limit: float, **options: Any
    ) -> subprocess.CompletedProcess[bytes] | None:
        """Run Helm without a cluster; return None when it does not end in time, after it was killed."""
        import subprocess

        argv = [str(self.executable), *arguments]
        try:
            return subprocess.run(argv, capture_output=True, timeout=limit, check=False, **options)
        except subprocess.TimeoutExpired:
            return None


def find_helm(kubeconfig: Path | None = None, context: str | None = None) -> Helm:
    """Find Helm; see `find_program`.

    Raises:
        MissingToolError: Helm is missing, does not run, or is older than 3.18.
    """
    executable = find_program() or on_path("helm")
    if executable is None:
        raise MissingToolError("helm is not installed; install Helm 3.18 or newer, or run `chartgen engines get helm`")
    version = _version(executable)
    if version[:2] < MINIMUM_VERSION:
        found, needed = ".".join(map(str, version)), ".".join(map(str, MINIMUM_VERSION))
        raise MissingToolError(f"{executable} is Helm {found}, but {needed} or newer is needed; upgrade Helm")
    return Helm(executable, version, kubeconfig, context)


def load_runner() -> Any:
    """Return pyhelm3's module of commands; a command imports it while it waits for something else.

    Its package would also load the client, whose models of pydantic take three times as long: a package of another name
    has the same modules and loads none itself.
    """
    found = find_spec("pyhelm3")
    alone = ModuleType("chartgen_pyhelm3")
    alone.__path__ = [*((found and found.submodule_search_locations) or ())]
    sys.modules.setdefault(alone.__name__, alone)
    return import_module(f"{alone.__name__}.command")


def find_program() -> Path | None:
    """Find the Helm to use: `$CHARTGEN_HELM`, a suitable one on PATH, or the one of `chartgen engines get`.

    Raises:
        MissingToolError: The variable is set but does not name a program.
    """
    return find_tool("helm", _fits)


def parse_version(text: str) -> tuple[int, int, int] | None:
    """Parse the output of `helm version`; builds without release flags report `v4.3`, which counts as 4.3.0."""
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text.strip())
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def _fits(executable: Path) -> bool:
    try:
        return MINIMUM_VERSION <= _version(executable) < _TOO_NEW
    except MissingToolError:  # it does not run
        return False


def _version(executable: Path) -> tuple[int, int, int]:
    stamp = executable.stat()
    return _version_of(executable, stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=8)
def _version_of(executable: Path, changed_ns: int, size: int) -> tuple[int, int, int]:
    """Return a Helm's version; query it once per state of the file, since a query takes as long as a small render."""
    key = hashlib.sha256(f"{executable} {changed_ns} {size}".encode()).hexdigest()
    version = parse_version(str(read_cached(_VERSIONS, key)))
    if version is None:
        version = _ask_version(executable)
        write_cached(_VERSIONS, key, ".".join(map(str, version)))
    return version


def _ask_version(executable: Path) -> tuple[int, int, int]:
    helm = Helm(executable, (0, 0, 0))
    try:
        text = helm.run(["version", "--template", "{{.Version}}"])
    except ChartgenError as error:
        raise MissingToolError(f"{executable} does not run: {error}") from None
    version = parse_version(text)
    if version is None:
        raise MissingToolError(f"{executable} does not report a Helm version but {text.strip()[:40]!r}")
    return version


def _silence(name: str) -> None:
    """Keep a library's warnings off stderr: the raised error contains the fault."""
    import logging

    logger = logging.getLogger(name)
    if not logger.hasHandlers():
        logger.addHandler(logging.NullHandler())


def _wait(command: Command, arguments: list[str], stdin: str | None) -> str:
    """Run pyhelm3's coroutine; use a thread when the caller (a notebook) already runs an event loop."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    async def call() -> bytes:
        output: bytes = await command.run(arguments, None if stdin is None else stdin.encode())
        return output

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call()).decode()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, call()).result().decode()
