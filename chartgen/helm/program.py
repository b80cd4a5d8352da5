"""Helm, run through pyhelm3: found, checked for its version, and its errors reduced to what a user can act on.

Only pyhelm3's `Command.run` is used. Its `Client` refuses every Helm that was built without release flags (they report
`v4.3`, not strict SemVer), concatenates lists where Helm replaces them, and knows no `helm lint`, no plain text of
`helm template`, and no install that refuses an existing release (pyhelm3 0.5.8, client.py and command.py).
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.files import write_whole
from chartgen.programs import cache_dir, find_tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyhelm3 import Command  # type: ignore[import-untyped]

# The oldest Helm whose `--output json`, schema validator and job hooks are those that the charts are tested with.
MINIMUM_VERSION = (3, 18)
_TOO_NEW = (5,)

_VERSIONS = "helm-versions.json"
_KEPT = 20  # states of Helm programs whose versions are remembered
# What Helm sees of the user's environment where it needs no cluster: nothing. Nothing lies below these folders.
_NOWHERE = "/nonexistent"
_ALONE = {"HOME": _NOWHERE, "KUBECONFIG": _NOWHERE} | {
    f"HELM_{what}_HOME": _NOWHERE for what in ("CACHE", "CONFIG", "DATA")
}
# A second wall behind the search of schemas for references: what Helm fetches by http goes to a port that nothing has.
_ALONE |= {f"{what}_PROXY": "http://127.0.0.1:0" for what in ("HTTP", "HTTPS")}
# Of an error stream without an end, the start and the end are read: the cause stands last.
_TELLING = 100_000
_UNREACHABLE = re.compile(
    r"cluster unreachable|connection refused|no such host|i/o timeout|network is unreachable|no configuration has been"
    r"|context [^\n]{0,300} does not exist|certificate signed by unknown|tls handshake|etcdserver",
    re.IGNORECASE,
)
# Words that Helm puts before the sentence that matters.
_PREFIX = re.compile(
    r"^(Error: |(INSTALLATION|UPGRADE) FAILED: |uninstall: |cluster reachability check failed: "
    r"|failed to render chart: |rendering template: )+"
)
_CHART_FAIL = re.compile(r"^execution error at \((?P<at>[^()]+)\):\s*(?P<text>.*)", re.DOTALL)
_TEMPLATE_PLACE = re.compile(r"^(?P<path>\S+?\.(?:yaml|yml|tpl|txt)):(?P<line>\d+)(?::(?P<column>\d+))?:?$")
_PARSE_ERROR = re.compile(r"^parse error at \((?P<at>[^()]+)\): (?P<text>.*)")
_TEMPLATE_LINE = re.compile(r"^template: (?P<at>\S+?:\d+(?::\d+)?): (?P<text>.*)", re.DOTALL)  # Helm 3: one long line
# Helm 3 writes all frames into it, each with its place.
_FRAME = re.compile(r"(?:^|: )template: (?P<at>[^\s:]{1,300}:\d{1,9}(?::\d{1,9})?): ")
_YAML_ERROR = re.compile(r"^YAML parse error on (?P<path>[^\s:]+): (?P<text>.*)", re.DOTALL)
_SCHEMA_ERROR = re.compile(r"^\s*- at '(?P<pointer>[^']*)': (?P<text>.*)")
_NOISE = re.compile(r"^(level=|Use --debug flag|WARNING: |I\d{4} |W\d{4} |coalesce\.go|\s*$)")


class HelmError(ChartgenError):
    """Helm said no; the problems hold its useful lines.

    Args:
        stderr: All that Helm wrote to its error stream.
        stdout: What it wrote to its output, where `helm lint` reports.
    """

    def __init__(self, stderr: str, stdout: str = "") -> None:
        self.stderr, self.stdout = stderr, stdout
        super().__init__(explain(stderr) or [Problem("helm failed without a message")])


@dataclass(frozen=True)
class Helm:
    """A Helm program of a known version, and the cluster that it talks to.

    Args:
        executable: The program.
        version: Major, minor and patch; a build without release flags reports no patch, which reads as 0.
        kubeconfig: The kubeconfig file; None for Helm's own choice.
        context: The kubeconfig context; None for the current one.
    """

    executable: Path
    version: tuple[int, int, int]
    kubeconfig: Path | None = None
    context: str | None = None

    def run(self, arguments: Sequence[str], stdin: str | None = None) -> str:
        """Run Helm and give what it wrote to its output.

        Args:
            arguments: The command and its arguments, without the program.
            stdin: Text for its input, such as values for `--values -`.

        Raises:
            MissingToolError: The cluster cannot be reached.
            HelmError: Helm failed for another reason.
        """
        from pyhelm3 import Command, Error

        _silence("pyhelm3")
        # `exec` replaces the shell that pyhelm3 starts, so that a cancelled command terminates Helm and not a shell.
        command = Command(executable="exec", kubeconfig=self.kubeconfig, kubecontext=self.context)
        try:
            return _wait(command, [str(self.executable), *arguments], stdin)
        except Error as error:
            stderr = error.stderr.decode(errors="replace")
            # A webhook that does not answer is a fault inside a cluster that does.
            if (match := _UNREACHABLE.search(stderr)) and "webhook" not in stderr:
                raise MissingToolError(_unreachable(stderr, match)) from None
            raise HelmError(stderr, error.stdout.decode(errors="replace")) from None

    def render(self, arguments: Sequence[str], stdin: str, limit: float) -> str:
        """Run a command of Helm that needs no cluster, and end it when it takes too long.

        Templates can loop for hours. Not through pyhelm3, which ends Helm with a signal that a render does not heed.
        Helm gets no kubeconfig, no home, no plugins and no proxy of the user's: a stranger's chart is rendered too.

        Args:
            arguments: The command and its arguments, without the program; paths stand behind `--`.
            stdin: Text for its input, such as values for `--values -`.
            limit: Seconds that it may take.

        Raises:
            HelmError: Helm failed, or took too long.
        """
        import subprocess

        argv = [str(self.executable), *arguments]
        try:
            ran = subprocess.run(
                argv, input=stdin.encode(), capture_output=True, timeout=limit, check=False, env=_ALONE
            )
        except subprocess.TimeoutExpired:
            raise HelmError(f"helm {arguments[0]} did not end within {limit:g} s") from None
        stdout, stderr = ran.stdout.decode(errors="replace"), _bounded(ran.stderr).decode(errors="replace")
        if ran.returncode < 0 or "cannot allocate memory" in stderr[:_TELLING]:
            raise HelmError(f"helm {arguments[0]} was ended: it took more memory or processor time than it may")
        if ran.returncode:
            raise HelmError(stderr, stdout)
        return stdout

    def pull(self, arguments: Sequence[str], limit: float, largest: int) -> None:
        """Run `helm pull` with the user's own environment, and so with the registries that he is logged in to.

        For a process of its own: the size of the files that it and its children may write stays bounded.

        Args:
            arguments: Flags, `--`, and the chart's address.
            limit: Seconds that it may take.
            largest: Bytes that the archive may have.

        Raises:
            MissingToolError: The server cannot be reached.
            HelmError: Helm failed for another reason, or took too long.
        """
        import resource
        import subprocess

        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest if hard < 0 else min(largest, hard), hard))
        argv = [str(self.executable), "pull", *arguments]
        try:
            ran = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            raise HelmError(f"{arguments[-1]} was not fetched within {limit:g} s") from None
        stderr = _bounded(ran.stderr).decode(errors="replace")
        if ran.returncode and _UNREACHABLE.search(stderr):
            raise MissingToolError(f"{arguments[-1]} cannot be reached: {' '.join(_PREFIX.sub('', stderr).split())}")
        if ran.returncode:
            raise HelmError(stderr or f"helm pull ended with {ran.returncode}")


def find_helm(kubeconfig: Path | None = None, context: str | None = None) -> Helm:
    """Find Helm; see `find_program`.

    Raises:
        MissingToolError: There is none, it does not run, or it is older than 3.18.
    """
    import shutil

    unfit = shutil.which("helm")
    executable = find_program() or (Path(unfit) if unfit else None)
    if executable is None:
        raise MissingToolError(
            "helm is not installed; install Helm 3.18 or newer, or run `chartgen engines build helm`"
        )
    version = _version(executable)
    if version[:2] < MINIMUM_VERSION:
        found, needed = ".".join(map(str, version)), ".".join(map(str, MINIMUM_VERSION))
        raise MissingToolError(f"{executable} is Helm {found}, but {needed} or newer is needed; upgrade Helm")
    return Helm(executable, version, kubeconfig, context)


def find_program() -> Path | None:
    """Find the Helm that is used: `$CHARTGEN_HELM`, one on PATH that will do, or the one of `chartgen engines build`.

    Raises:
        MissingToolError: The variable is set but names no program.
    """
    return find_tool("helm", _fits)


def parse_version(text: str) -> tuple[int, int, int] | None:
    """Read what `helm version` reports; builds without release flags report `v4.3`, which reads as 4.3.0."""
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text.strip())
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def explain(stderr: str) -> list[Problem]:
    """Reduce what Helm wrote to its error stream to one problem for each thing that is wrong."""
    lines = [line.rstrip() for line in stderr.splitlines() if not _NOISE.match(line)]
    if not lines:
        lines = [line for line in stderr.splitlines() if line.strip()][-1:]
    text = _PREFIX.sub("", "\n".join(lines))
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


def _bounded(stream: bytes) -> bytes:
    return stream if len(stream) <= 2 * _TELLING else stream[:_TELLING] + b"\n" + stream[-_TELLING:]


def _template_problem(text: str) -> Problem:
    """Join the frames of a Go template error: the innermost place, then the cause, which stands last."""
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


def _unreachable(stderr: str, match: re.Match[str]) -> str:
    line = next(line for line in reversed(stderr.splitlines()) if match[0] in line)
    cause = line.rpartition("unreachable: ")[2].rpartition('msg="')[2]
    cause = " ".join(_PREFIX.sub("", cause).split())
    return f"the Kubernetes cluster cannot be reached: {cause}; check the kubeconfig and its current context"


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
    """Return a Helm's version, asked once for each state of the file: a question takes as long as a small render."""
    key = f"{executable} {changed_ns} {size}"
    known = _known_versions()
    version = parse_version(str(known.get(key, "")))
    if version is None:
        version = _ask_version(executable)
        known[key] = ".".join(map(str, version))
        _remember(dict(list(known.items())[-_KEPT:]))
    return version


def _known_versions() -> dict[str, str]:
    try:
        known = json.loads((cache_dir() / _VERSIONS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _remember(known: dict[str, str]) -> None:
    """Write the versions down; where that is not possible they are asked for again."""
    folder = cache_dir()
    with suppress(OSError, ChartgenError):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / _VERSIONS, json.dumps(known))


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
    """Keep a library's warnings off stderr: what went wrong is in the error that is raised."""
    import logging

    logger = logging.getLogger(name)
    if not logger.hasHandlers():
        logger.addHandler(logging.NullHandler())


def _wait(command: Command, arguments: list[str], stdin: str | None) -> str:
    """Run pyhelm3's coroutine to its end; in a thread when the caller (a notebook) already runs an event loop."""
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
