"""Runs one process of the run, and ends it when it hangs: no step has followed the last one for too long.

    hang.py FOLDER PROGRAM [ARGUMENT]...

FOLDER contains a file with the number of each process of this machine. HANG_SECONDS is the time that a step may take,
STEP_LINE a text in each line of a step (empty: the usual lines), GRACE_SECONDS the time between SIGTERM and the end of
the pod. Watched is a process that prints steps, from its first one on; with most programs that is one rank of the run.
When it hangs, SIGABRT ends all processes of its machine, and Python prints the stack of each thread
(PYTHONFAULTHANDLER). The controller then ends the other machines: what still hangs there at the end of its grace
period ends in the same way.

Exit codes: the program's own; 75 it was ended.
"""

from __future__ import annotations

import os
import re
import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

HUNG = 75  # EX_TEMPFAIL of sysexits.h: another try may succeed
SPARE = 5  # seconds of the grace period in which stacks are printed
DYING = 20  # seconds after which SIGKILL follows SIGABRT
LONGEST = 4096  # bytes of an unfinished line
# Megatron-LM, Megatron-Bridge, NeMo 2: "iteration 5/ 100"; torchtitan, Automodel: "step: 5"; bars of NeMo 1 and Hugging
# Face: "5/100 [00:07<".
STEP = rb"(?i)\b(iteration|(global_?)?steps?)\b\W{1,8}\d|\b\d+/\d+ \[\d"


class Watch:
    """A program whose output is passed on while its steps are awaited.

    Args:
        seconds: Longest time between two steps.
        text: A text in each line of a step; empty for the usual lines.
        folder: Folder with the numbers of this machine's processes.
    """

    def __init__(self, seconds: float, text: str, folder: Path) -> None:
        self._seconds, self._folder = seconds, folder
        self._step = re.compile(re.escape(text.encode()) or STEP)
        self._due: float | None = None
        self._dead: float | None = None
        self._stopped = False
        self._line = b""

    def run(self, command: list[str], grace: int) -> int:
        """Run the program to its end and return its exit code."""
        # A core of each rank would fill the disk.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
        self._program = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, bufsize=0
        )
        signal.signal(signal.SIGTERM, lambda *_: self._stop(grace))
        signal.signal(signal.SIGALRM, lambda *_: self._abort())
        signal.signal(signal.SIGUSR1, lambda *_: self._abort())
        self._pass_on()
        code = self._program.wait()
        if self._dead is not None:
            return HUNG
        return code if code >= 0 else 128 - code

    def _pass_on(self) -> None:
        """Pass the output on until the program has ended; what its children still print is lost."""
        assert self._program.stdout  # noqa: S101 - a pipe
        output = self._program.stdout.fileno()
        while True:
            if select.select([output], [], [], 1.0)[0]:
                block = os.read(output, 65536)
                if not block:
                    return
                sys.stdout.buffer.write(block)
                sys.stdout.buffer.flush()
                self._look(block)
            elif self._program.poll() is not None:
                return
            now = time.monotonic()
            if self._dead is not None and now > self._dead:
                self._program.kill()
            elif self._due is not None and self._dead is None and now > self._due:
                self._end_machine()

    def _look(self, block: bytes) -> None:
        """Look for a step in the lines that a block completes; carriage returns end those of a bar."""
        *lines, rest = re.split(rb"[\r\n]", self._line + block)
        self._line = rest[-LONGEST:]
        if any(map(self._step.search, lines)):
            self._due = time.monotonic() + self._seconds

    def _end_machine(self) -> None:
        """End all processes of this machine; each is run by this script."""
        minutes = f"{self._seconds / 60:g} min"
        sys.stdout.write(f"chartgen: no step for {minutes}: the run hangs, its processes print their stacks and end\n")
        sys.stdout.flush()
        Path(f"{self._folder}.hung").touch()
        for file in self._folder.iterdir():
            os.kill(int(file.read_text().split()[0]), signal.SIGUSR1)
        self._abort()

    def _stop(self, grace: int) -> None:
        self._program.terminate()
        self._due = None  # a program that saves takes no steps
        if not self._stopped:  # torchrun sends SIGTERM once more
            signal.alarm(max(grace - SPARE, 1))
        self._stopped = True

    def _abort(self) -> None:
        if self._dead is None:
            self._dead = time.monotonic() + DYING
            self._program.send_signal(signal.SIGABRT)


if __name__ == "__main__":
    processes, *program = sys.argv[1:]
    watch = Watch(float(os.environ["HANG_SECONDS"]), os.environ["STEP_LINE"], Path(processes))
    sys.exit(watch.run(program, int(os.environ["GRACE_SECONDS"])))
