"""A small process that owns the children of one control plane, so that they end with it.

It runs as a script, with the standard library only. The owner sends it JSON lines over stdin and reads from stdout:
{"spawn": {name, argv, env, log}} -> {"pid"}; {}, {"stop": name} and {"detach": true} -> {"exited": {name: code}}.
When stdin closes, which means that the owner has ended, it kills all children and removes the folder. After `detach`
it runs until SIGTERM. If it is killed itself, Linux kills its children (PR_SET_PDEATHSIG); macOS has no equivalent:
there they run until they are killed by hand. It holds the lock of the folder (fd given in argv) while it lives.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Supervisor:
    """The children of one control plane, whose folder is removed at the end."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._die_with_me = _death_signal()
        self._detached = False

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Execute one request and return the response."""
        if "spawn" in request:
            return self._spawn(**request["spawn"])
        if "stop" in request:
            self._kill([self._children.pop(request["stop"])])
        elif "detach" in request:
            self._detached = True
        exited = {name: code for name, child in self._children.items() if (code := child.poll()) is not None}
        return {"exited": exited}

    def serve(self) -> None:
        """Answer requests until the owner has ended, or after `detach` until a signal ends the process."""
        pending = b""
        while chunk := os.read(0, 65536):
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                os.write(1, json.dumps(self.answer(json.loads(line))).encode() + b"\n")
        while self._detached:
            select.select([], [], [], 60)
            self.answer({})  # reaps ended children, so that no zombies remain

    def close(self) -> None:
        """Kill all children and remove the folder; no data needs a graceful end."""
        self._kill(list(self._children.values()))
        shutil.rmtree(self._folder, ignore_errors=True)

    def _spawn(self, name: str, argv: list[str], env: dict[str, str], log: str) -> dict[str, Any]:
        with open(log, "ab") as output:  # noqa: PTH123 - pathlib would double the time to start
            try:
                self._children[name] = subprocess.Popen(
                    argv,
                    env=env,
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    preexec_fn=self._die_with_me,  # noqa: PLW1509 - this process has one thread
                )
            except OSError as error:
                return {"error": f"{argv[0]}: {error.strerror}"}
        return {"pid": self._children[name].pid}

    @staticmethod
    def _kill(children: list[subprocess.Popen[bytes]]) -> None:
        for child in children:
            child.kill()
        for child in children:
            child.wait()


def _death_signal() -> Callable[[], object] | None:
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _main() -> None:
    def end(*_: object) -> None:
        raise SystemExit

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the owner, which closes stdin at its end
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    supervisor = Supervisor(sys.argv[1])
    try:
        supervisor.serve()
    except BrokenPipeError:
        pass  # the owner died between request and response
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        supervisor.close()


if __name__ == "__main__":
    _main()
