"""Child processes in a private folder that always end with their owner; see supervisor.py."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.rehearsal.folders import LockedFolder, is_alive, new_folder, sweep_folders

if TYPE_CHECKING:
    from typing_extensions import Self

_PORT_TAKEN = "address already in use"
_TRIES = 4
_PATIENCE = 15.0  # seconds for processes to end


class Processes:
    """The processes of one control plane, and the folder of their files.

    Use it as a context manager, or call `close`. Only its owner can read the folder.
    """

    def __init__(self) -> None:
        if sys.platform == "win32":
            raise MissingToolError(Problem("rehearsals need Linux or macOS", hint="use WSL"))
        sweep_folders()
        with new_folder() as folder:
            self._supervisor = _start_supervisor(folder)
        self.folder = folder.path
        self.pid = self._supervisor.pid
        self.pids: dict[str, int] = {}  # of each child, by name
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(
        self,
        name: str,
        command: Callable[[Sequence[int]], Sequence[str | Path]],
        *,
        ports: int = 0,
        ready: Callable[[Sequence[int]], bool],
        timeout: float = 180.0,
        env: Mapping[str, str] | None = None,
    ) -> list[int]:
        """Start a process on free ports, wait until it is ready, and return the ports.

        Args:
            name: Name of the process and its log file.
            command: Returns its argv for the ports.
            ports: Number of ports; they are chosen again when another program takes one in between.
            ready: Returns whether it serves on the ports.
            timeout: Seconds.
            env: Environment variables beside PATH, HOME and TMPDIR.

        Raises:
            MissingToolError: A process ended, or it did not become ready; the message ends with the end of the log.
        """
        tries_left = _TRIES
        while True:
            with free_ports(ports) as chosen:
                argv = command(chosen)
            self.spawn(name, argv, env)
            try:
                self.wait(f"{name} is not ready", partial(ready, chosen), timeout=timeout, log=name)
            except MissingToolError:
                tries_left -= 1
                if not tries_left or _PORT_TAKEN not in self.log(name).lower():
                    raise
                self.stop(name)
                self._log(name).unlink()
            else:
                return chosen

    def spawn(self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None) -> None:
        """Start a process without waiting for it; see `start`."""
        base = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        full = {**base, "TMPDIR": str(self.folder), **(env or {})}
        request = {"name": name, "argv": [str(part) for part in argv], "env": full, "log": str(self._log(name))}
        reply = self._ask({"spawn": request})
        if "error" in reply:
            raise MissingToolError(f"{name} cannot be started: {reply['error']}")
        self.pids[name] = reply["pid"]

    def stop(self, name: str) -> None:
        """Kill one process, for example to start it again."""
        self._ask({"stop": name})
        del self.pids[name]

    def exited(self) -> dict[str, int]:
        """Return the exit codes of the ended children."""
        codes: dict[str, int] = self._ask({})["exited"]
        return codes

    def ended(self) -> Problem | None:
        """Return the problem that the supervisor or a process has ended; None while all run."""
        try:
            codes = self.exited()
        except ChartgenError as error:
            return error.problems[0]
        name = next(iter(codes), None)
        return None if name is None else Problem(f"{name} {_how(codes[name])}", hint=self._tail(name))

    def log(self, name: str) -> str:
        """Return the stdout and stderr of a process."""
        path = self._log(name)
        return path.read_text("utf-8", "replace") if path.exists() else ""

    def wait(self, problem: str, check: Callable[[], bool], *, timeout: float = 180.0, log: str) -> None:
        """Poll until a condition is true.

        Args:
            problem: What is wrong without it, for the message.
            timeout: Seconds.
            log: The process whose log explains a time-out.

        Raises:
            MissingToolError: The condition is not true in time, or a process ended meanwhile.
        """
        deadline = time.monotonic() + timeout
        while not check():
            if ended := self.ended():
                raise MissingToolError(ended)
            if time.monotonic() > deadline:
                raise MissingToolError(Problem(f"{problem} after {timeout:.0f} s", hint=self._tail(log)))
            time.sleep(0.05)

    def detach(self) -> None:
        """Let the processes outlive this one; `end_detached` ends them."""
        self._ask({"detach": True})
        self._close_pipes()
        self._supervisor.returncode = 0  # no longer a child of this process; avoids a ResourceWarning

    def close(self) -> None:
        """Kill the processes and remove the folder; harmless when called again or after `detach`."""
        if self._supervisor.returncode == 0:
            return
        self._close_pipes()
        try:
            self._supervisor.wait(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()
        if self._supervisor.returncode != 0:  # it was killed before its own cleanup
            shutil.rmtree(self.folder, ignore_errors=True)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._supervisor.stdin, self._supervisor.stdout
        assert stdin is not None  # noqa: S101 - asked for as a pipe
        assert stdout is not None  # noqa: S101 - asked for as a pipe
        try:
            with self._lock:
                stdin.write(json.dumps(request).encode() + b"\n")
                stdin.flush()
                reply: dict[str, Any] = json.loads(stdout.readline())
        except (BrokenPipeError, ValueError):
            raise MissingToolError(self._gone()) from None
        return reply

    def _gone(self) -> Problem:
        """Return the problem that the supervisor has ended, and with it all processes."""
        problem = "the control plane has ended"
        with suppress(subprocess.TimeoutExpired):
            if code := self._supervisor.wait(timeout=5):
                problem += f": its supervisor, process {self.pid}, {_how(code)}"
                return Problem(problem, hint="look for what killed it, such as a lack of memory, and try again")
        return Problem(problem)

    def _close_pipes(self) -> None:
        for pipe in (self._supervisor.stdin, self._supervisor.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # the supervisor ended before it read the request
                    pipe.close()

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _tail(self, name: str) -> str:
        return "its log ends: " + " | ".join(self.log(name).splitlines()[-6:])


def _how(code: int) -> str:
    """Describe how a process ended, from its return code in `subprocess`."""
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


def end_detached(folder: Path, pid: int) -> None:
    """End processes that `Processes.detach` left running; harmless when they have ended."""
    deadline = time.monotonic() + _PATIENCE
    while is_alive(folder):
        os.kill(pid, signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL)
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def free_ports(count: int) -> Iterator[list[int]]:
    """Reserve free loopback ports; they can be bound as soon as the block ends."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        yield [each.getsockname()[1] for each in sockets]


def _start_supervisor(folder: LockedFolder) -> subprocess.Popen[bytes]:
    """Start the supervisor with the folder's lock; afterwards only the supervisor keeps it."""
    script = Path(__file__).with_name("supervisor.py")
    with (folder.path / "supervisor.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), str(folder.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,  # not the owner's: a pipe there would stay open while a sandbox runs
            pass_fds=[folder.lock.fileno()],
            start_new_session=True,  # out of reach of the Ctrl-C that ends its owner
        )


def listens(port: int) -> bool:
    """Report whether a port of this machine accepts connections."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True


def answers(address: str) -> bool:
    """Report whether a GET on the loopback interface returns 200; so without a proxy."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=2) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False
