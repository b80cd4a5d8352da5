"""One hostile input at a time: chartgen in a process of its own, with a budget, watched by an audit hook.

A fault is a run that does not end, an exception that chartgen did not foresee, an exit code that is not documented, a
file opened or a program started outside of what the input may touch, memory beyond the budget, and output that steers
a terminal. What Helm opens is known only where strace is (`traced`).
"""

from __future__ import annotations

import json
import os
import re
import resource
import select
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from steering import faults as steering

from chartgen.programs import cache_dir

ROOT = Path(__file__).resolve().parents[2]
GIGA = 1 << 30
# What the end of a chart's lint may be told with: its limits. Another word there is an exception that nobody foresaw.
_CRASHED = re.compile(
    r"was not checked to the end: (?!MemoryError|RecursionError)(\w+(?:Error|Exception)\b[^\n\"]{0,200})"
)
_LIMITED = re.compile(r"did not end within|was not checked to the end|out of time")
_SHOWN = 2000
# GitHub's annotations are commands on purpose: only these, each on a line of its own.
_ANNOTATION = re.compile(r"(?m)^::(?:error|warning|notice)(?: [^\n]*)?::([^\n]*)")
# Devices that Python and subprocess open themselves, and the time zones that `datetime` reads.
_OWN = ("/dev/null", "/dev/urandom", "/usr/share/zoneinfo", "/etc/localtime")
# What Go's runtime and Helm read of the machine, whatever the chart: `strace helm version`.
_OF_HELM = (*_OWN, "/sys/kernel/mm", "/sys/fs/cgroup", "/proc/self", "/sys/devices/system/cpu")
_READS = ("open", "os.listdir", "os.scandir")
_WRITES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.link", "os.symlink", "os.truncate")
_BY_FOLDER = ("os.remove", "os.rmdir")  # their last argument is the descriptor of an open folder, or -1
_SOCKETS = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "os.system")
_LOCAL = ("socket.connect", "socket.bind", "socket.getaddrinfo")
_NEVER = (*_SOCKETS, "urllib.Request", "pickle.find_class", "os.exec", "os.posix_spawn", "pty.spawn")


@dataclass(frozen=True)
class Budget:
    """What one input may take."""

    wall: float = 120  # seconds until it counts as endless; far above the processor time, as machines are shared
    processor: int = 30  # seconds of processor time
    # Bytes of address space, beside what the process that forks has already: a worker that has run many tests begins
    # with gigabytes, and would end by an error where it should end by what it used
    memory: int = 2 * GIGA
    resident: int = GIGA  # bytes of resident memory, of the largest process


@dataclass(frozen=True)
class Cage:
    """Where an input may read, write, and what it may start."""

    reads: Path  # the input's folder
    writes: Path  # the folder for what it writes
    scratch: Path  # the folder for its temporary files
    programs: tuple[str, ...] = ()  # names of programs that it may start; bash only to read a script, with -n
    talks: bool = False  # whether it may connect to servers of this machine

    def allows(self, path: str, *, write: bool) -> bool:
        """Report whether a file, links followed, may be opened."""
        real = os.path.realpath(path)
        inside = [str(self.writes), str(self.scratch)] + ([] if write else [str(self.reads), *_installed()])
        return (
            any(real == each or real.startswith(f"{each}/") for each in map(os.path.realpath, inside)) or real in _OWN
        )


@dataclass
class Verdict:
    """What became of an input."""

    code: int = -1  # its exit code; -1 for none
    faults: list[str] = field(default_factory=list)  # what must not be, a line each
    resident: int = 0  # bytes of its largest process
    seconds: float = 0  # of processor time
    limited: bool = False  # whether lint stopped at a limit of its own, and says so
    # Programs that it started, with their first argument, and how often
    ran: Counter[str] = field(default_factory=Counter)


def caged(work: Callable[[], object], cage: Cage, budget: Budget) -> Verdict:
    """Do some work in a child process, in the input's folder, and judge it.

    Args:
        work: Ends by itself, or with SystemExit.
        cage: Where it may read and write.
        budget: What it may take.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _work(writer, work, cage, budget)
    os.close(writer)
    told, ended = _listen(reader, budget.wall)
    os.close(reader)
    for kill, target in ((os.killpg, child), (os.kill, child)):
        with suppress(ProcessLookupError, PermissionError):
            kill(target, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    return _judged(told, status if ended else None, used, cage, budget)


def _work(writer: int, work: Callable[[], object], cage: Cage, budget: Budget) -> NoReturn:
    code, fault = 0, ""
    try:
        os.setsid()
        os.chdir(cage.reads)
        _redirect(cage.writes)
        space = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") + budget.memory
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
        resource.setrlimit(resource.RLIMIT_CPU, (budget.processor, budget.processor + 5))
        resource.setrlimit(resource.RLIMIT_FSIZE, (GIGA, GIGA))
        sys.addaudithook(partial(_watch, writer, cage))
        work()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else bool(end.code)
    except BaseException:  # noqa: BLE001 whatever it is, it is what is looked for
        fault = traceback.format_exc(limit=-6)
    with suppress(Exception):
        sys.stdout.flush()
    with suppress(Exception):
        sys.stderr.flush()
    os.write(writer, json.dumps({"code": code, "fault": fault[-_SHOWN:]}).encode() + b"\n")
    os._exit(0)


def _redirect(folder: Path) -> None:
    """Write both streams to files, in the encoding and with the strictness of a UTF-8 terminal."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, number)
        os.close(descriptor)
        errors = "strict" if number == 1 else "backslashreplace"
        setattr(sys, name, open(number, "w", encoding="utf-8", errors=errors, closefd=False))  # noqa: SIM115


def _watch(writer: int, cage: Cage, event: str, arguments: tuple[Any, ...]) -> None:
    """Write down what is outside of the cage; an audit hook sees what Python opens, in child processes too."""
    if event in _READS:
        path = arguments[0]
        write = event == "open" and isinstance(arguments[2], int) and bool(arguments[2] & 3)
        told = isinstance(path, int) or cage.allows(os.fsdecode(path or "."), write=write)
    elif event in _WRITES:
        path = _below(os.fsdecode(arguments[0]), arguments[-1] if event in _BY_FOLDER else -1)
        told = cage.allows(path, write=True)
    elif event == "subprocess.Popen":
        path, words = arguments[0], [os.fsdecode(each) for each in arguments[1]]
        name = os.path.basename(os.fsdecode(path))  # noqa: PTH119 a hook must be quick
        told = name in cage.programs and (name != "bash" or words[1:] == ["-n"])
        if told:
            os.write(writer, json.dumps({"ran": f"{name} {words[1]}"}).encode() + b"\n")
    elif event in _NEVER:
        path, told = arguments, cage.talks and event in _LOCAL and "127.0.0.1" in str(arguments)
    else:
        return
    if not told:
        os.write(writer, json.dumps({"outside": f"{event} {path!r}"[:500]}).encode() + b"\n")


def _below(path: str, folder: int) -> str:
    """Return a path that is relative to an open folder, as `shutil.rmtree` removes files, in full."""
    return os.path.join(os.readlink(f"/proc/self/fd/{folder}"), path) if folder >= 0 else path  # noqa: PTH115, PTH118


def _installed() -> list[str]:
    """Return the folders of the interpreter, of installed packages, of chartgen and of its engines."""
    return [
        str(ROOT / "chartgen"),
        str(cache_dir() / "engines"),
        sys.prefix,
        sys.base_prefix,
        *(each for each in sys.path if each.startswith("/")),
    ]


def _listen(reader: int, wall: float) -> tuple[list[dict[str, Any]], bool]:
    """Read what the child tells until it ends, and whether it did in time."""
    text, deadline = b"", time.monotonic() + wall
    while not text.rpartition(b'{"code"')[1] or not text.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return _lines(text), False
        part = os.read(reader, 1 << 16)
        if not part:
            break
        text += part
    return _lines(text), True


def _lines(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]


def _judged(told: list[dict[str, Any]], status: int | None, used: Any, cage: Cage, budget: Budget) -> Verdict:
    verdict = Verdict(resident=used.ru_maxrss * 1024, seconds=used.ru_utime + used.ru_stime)
    end = next((each for each in told if "code" in each), None)
    verdict.code = end["code"] if end else -1
    verdict.faults += dict.fromkeys(f"outside: {each['outside']}" for each in told if "outside" in each)
    verdict.ran.update(each["ran"] for each in told if "ran" in each)
    if status is None:
        verdict.faults.append(f"endless: it did not end within {budget.wall:g} s")
    elif end is None:
        signalled = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        kind = "endless" if signalled == signal.SIGXCPU else "killed"
        verdict.faults.append(f"{kind}: it ended by signal {signalled} after {verdict.seconds:.0f} s of processor time")
    elif end["fault"]:
        verdict.faults.append(f"traceback: {end['fault'].strip()}")
    elif end["code"] not in (0, 1, 2, 3):
        verdict.faults.append(f"exit code: {end['code']}")
    if verdict.resident > budget.resident:
        verdict.faults.append(f"memory: {verdict.resident / 1e6:.0f} MB")
    _read(verdict, cage.writes)
    return verdict


def _message(annotation: re.Match[str]) -> str:
    """Return the message of an annotation: the runner takes the whole line for that one command, whatever is in it.

    Source: actions/runner, src/Runner.Worker/ActionCommandManager.cs, which tries `##[` only where `::` did not fit.
    """
    return "annotation: " + annotation[1].replace("##[", "")


def _read(verdict: Verdict, folder: Path) -> None:
    """Judge what was printed."""
    for name in ("stdout", "stderr"):
        path = folder / name
        text = path.read_bytes()[: 4 << 20].decode("utf-8", "replace") if path.exists() else ""
        verdict.faults += [
            f"steers: {line[:300]!r} on {name}" for line in steering(_ANNOTATION.sub(_message, text))[:3]
        ]
        verdict.faults += [f"traceback: {each}" for each in _CRASHED.findall(text)[:3]]
        if "Traceback (most recent" in text:
            verdict.faults.append(f"traceback: printed on {name}")
        verdict.limited |= bool(_LIMITED.search(text))


_OPENED = re.compile(r"open(?:at2?)?\(.*?\) = \d+<(?P<path>[^>]*)>")
_CONNECTED = re.compile(r"(?:connect|bind|sendto)\((?P<what>.*)")
_STARTED = re.compile(r'execve\("(?P<path>[^"]*)"')
TRACER = """#!/bin/sh
calls=open,openat,openat2,creat,connect,bind,sendto,execve
exec {strace} -ff -y -qq -s 300 -e trace=$calls -o {folder}/trace {helm} "$@"
"""


def traced(folder: Path, cage: Cage, helm: str) -> list[str]:
    """Return what Helm opened, connected to or started outside of the cage, as strace tells, and remove its files."""
    found: dict[str, None] = {}
    for file in sorted(folder.glob("trace.*")):
        for line in file.read_text(errors="replace").splitlines():
            if match := _OPENED.search(line):
                path = match["path"]
                if not (cage.allows(path, write=False) or path.startswith((*_OF_HELM, "/proc/")) or path == helm):
                    found[f"outside: helm opens {path}"] = None
            elif match := _CONNECTED.search(line):
                found[f"outside: helm talks to {match['what'][:200]}"] = None
            elif (match := _STARTED.search(line)) and match["path"] != helm:
                found[f"outside: helm starts {match['path']}"] = None
        file.unlink()
    return list(found)
