"""Runs one process of the run, passes its output on, and looks for its steps.

    watch.py FOLDER PROGRAM [ARGUMENT]...
    watch.py --ended CODE

Watched is a process that prints steps, from its first one on; with most programs that is one rank of the run. Before
that, it is the first process of each machine, for FIRST_STEP_SECONDS (unset: two hours): each machine leaves a file in
RUN_DIRECTORY/starting, rank 0 one named 0, which the first step removes. If it is still there, the run hangs. Machines
that do not see the files of all others, as on storage of their own, wait on.

HANG_SECONDS is the time that a step may take; unset: it follows from the steps before (`Limit`). When one takes longer,
the run hangs: SIGABRT ends all processes of this machine, and Python prints the stack of each thread
(PYTHONFAULTHANDLER). The controller then ends the other machines: what still hangs there at the end of its grace period
ends in the same way. FOLDER contains a file with the number of each process of this machine, STEP_LINE is a text in
each line of a step (empty: the usual lines), GRACE_SECONDS the time between SIGTERM and the end of the pod (unset: no
limit).

METRICS_SOCKET is the socket of this machine's exporter, which gets each line that can be a step's. Nothing waits for
it: a line that it cannot take is lost.

A process that fails, and the first of a machine that is stopped, leaves a black box, RUN_DIRECTORY/blackbox/rank-N.log:
exit code, memory, disk, versions, GPUs and last output, with stacks. Dumps of PyTorch's Flight Recorder are beside it.
`chartgen why` reads the folder. The second form leaves machine-N.log, of a machine that ends before its program.

Exit codes: the program's own; 75 it was ended. The first failure of this machine leaves its code in FOLDER.code, since
torchrun reports 1 for each. If it is one of ENDING_EXITS, the launcher gets SIGTERM: it would start them again.
"""

from __future__ import annotations

import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

HUNG = 75  # EX_TEMPFAIL of sysexits.h: another try may succeed
ENDED = 143  # 128 + SIGTERM: what the others get after the first failure
SPARE = 5  # seconds of the grace period in which stacks are printed
DYING = 20  # seconds after which SIGKILL follows SIGABRT
LONGEST = 4096  # bytes of a line
# The limit that follows from a run's own steps.
USUAL = 20  # times the median of the steps before
LEAST = 300.0  # seconds; the grace period, in which a checkpoint is saved, comes on top
LONGER = 3  # times the longest step before, which may be an evaluation or a checkpoint
FIRST, EARLY = 5, 3600.0  # steps that compile and fill caches, and their seconds
START = 7200.0  # seconds until the first step: weights are loaded, and indexes of data made
REST = 1 << 20  # bytes of output after the program's end, in 64 pieces at most; no pipe holds more
KEPT = 1 << 15  # bytes of output in a black box; a run of 16,384 ranks leaves 512 MiB
# Fields of nvidia-smi (its --help-query-gpu, driver 580).
GPUS = "index,temperature.gpu,power.draw,clocks.sm,clocks_throttle_reasons.active,memory.used"
GPUS += ",ecc.errors.uncorrected.volatile.total,remapped_rows.pending"
# What NVIDIA's images contain (docs.nvidia.com, PyTorch containers); never the whole environment, which has secrets.
VERSIONS = ("CUDA_VERSION", "NCCL_VERSION", "PYTORCH_VERSION", "NVIDIA_PYTORCH_VERSION", "NEMO_VERSION")
# Flight Recorder of torch 2.4 and newer; newer names (TORCH_FR_...) include these. Megatron-LM 0.18 would have it dump
# at each end too, after which torch 2.11 waits 8 minutes for a hang, and only what is active, which names no rank.
RECORDER = {"TORCH_NCCL_TRACE_BUFFER_SIZE": "2000", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1"}
RECORDER |= {"TORCH_NCCL_EXTRA_DUMP_ON_EXEC": "0", "TORCH_INCLUDE_ONLY_ACTIVE": "0"}
DUMP = 8  # seconds until all processes end together; a dump with stacks took 6 on two H100 (torch 2.11, 2026-11-28)
MEMORY = "/sys/fs/cgroup/memory."
KERNEL = "/dev/kmsg"
PRELUDE = os.environ.get("CHARTGEN_PRELUDE", "-")  # output of this machine before its program
FACTS = (f"{MEMORY}max", f"{MEMORY}peak", f"{MEMORY}events", "/proc/driver/nvidia/version", PRELUDE)
# Megatron-LM, Megatron-Bridge, NeMo 2: "iteration 5/ 100"; torchtitan, Automodel: "step: 5"; bars of NeMo 1 and Hugging
# Face: "5/100 [00:07<".
# "saving checkpoint at iteration 1000" and "loaded at step 5" are no steps: ranks print them that never print a step.
OTHER = rb"checkpoint|\bsav(e|ed|ing)\b|\bload(ed|ing)?\b|\bresum"
COLOUR = re.compile(rb"\x1b\[[\d;]{0,20}m")  # torchtitan's own lines have them
STEP = rb"(?i)^(?!.*(%s)).*(\b(iteration|(global_?)?steps?)\b\W{1,8}\d|\b\d+/\d+ \[\d)" % OTHER

BOX = Path(os.environ.get("RUN_DIRECTORY", "."), "blackbox")
STARTING = BOX.with_name("starting")
BOOT = Path("/proc/sys/kernel/random/boot_id")  # of the machine: each attempt may give it other ranks


class Limit:
    """The longest time between two steps.

    Args:
        seconds: The time; None = it follows from the steps before.
        batches: Batches of an evaluation, each of which takes less than a step.
        grace: Seconds of a checkpoint.
    """

    def __init__(self, seconds: float | None, batches: int = 0, grace: int = 0) -> None:
        self._fixed, self._batches, self._grace = seconds, batches, grace
        self._last, self._longest = 0.0, 0.0
        self._steps: deque[float] = deque(maxlen=100)

    def first(self) -> float:
        """Return the seconds until the first step is due."""
        return max(float(os.environ.get("FIRST_STEP_SECONDS") or START), self._fixed or 0.0)

    def after_step(self, now: float) -> float:
        """Return the seconds until the next step is due, after a step at this time."""
        if self._fixed is not None:
            return self._fixed
        if self._last:
            self._steps.append(now - self._last)
            self._longest = max(self._longest, now - self._last)
        self._last = now
        if len(self._steps) < FIRST:
            return EARLY
        usual = sorted(self._steps)[len(self._steps) // 2]
        return max(LEAST + self._grace, (USUAL + self._batches) * usual, LONGER * self._longest)


class Watch:
    """A program whose output is passed on while its steps are awaited.

    Args:
        text: A text in each line of a step; empty for the usual lines.
        folder: Folder with the numbers of this machine's processes.
    """

    def __init__(self, limit: Limit | None, text: str, folder: Path, report: Report | None = None) -> None:
        self._limit, self._folder, self._report = limit, folder, report
        self._allowed, self._started = 0.0, False
        self._step = re.compile(re.escape(text.encode()) or STEP)
        self._due: float | None = None
        self._dead: float | None = None
        self._abortion: float | None = None
        rank = os.environ.get("RANK", "0")
        self._pipe, self._dump = Path(f"{folder}.dump-{rank}.pipe"), BOX / f"nccl_trace_rank_{rank}"
        self._stopped = False
        self._line = self._tail = b""
        self._kernel = open_kernel()
        self._last = time.monotonic()

    def run(self, command: list[str], grace: int) -> int:
        """Run the program to its end and return its exit code."""
        environment = dict(os.environ)
        if self._limit:
            # A core of each rank would fill the disk.
            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
            environment["PYTHONFAULTHANDLER"] = "1"
            # PyTorch makes no folder, follows a link of another user, and waits for who reads a pipe.
            files = {}
            with suppress(OSError):
                for path in (BOX, self._dump):
                    if path.is_symlink() or path.is_fifo():
                        path.unlink(missing_ok=True)
                BOX.mkdir(parents=True, exist_ok=True)
                files["TEMP"] = f"{BOX}/nccl_trace_rank_"  # not where a link stays
            with suppress(OSError):  # PyTorch, which makes its own, would fail where no pipe can be
                self._pipe.unlink(missing_ok=True)
                os.mkfifo(self._pipe)
                files["PIPE"] = f"{self._folder}.dump-"
            recorder = RECORDER | {f"TORCH_NCCL_DEBUG_INFO_{kind}_FILE": path for kind, path in files.items()}
            environment = recorder | environment
        self._program = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, bufsize=0
        )
        signal.signal(signal.SIGTERM, lambda *_: self._stop(grace))
        signal.signal(signal.SIGALRM, lambda *_: self._abort())
        signal.signal(signal.SIGUSR1, lambda *_: self._abort())
        if os.environ.get("LOCAL_RANK") == "0":
            Path(f"{self._folder}.code").unlink(missing_ok=True)  # of processes that the launcher has started again
        if self._limit and os.environ.get("LOCAL_RANK") == "0":
            self._allowed = self._limit.first()
            self._due = time.monotonic() + self._allowed
            announce_start()
        self._pass_on()
        code = self._program.wait()
        code = HUNG if self._dead is not None else code if code >= 0 else 128 - code
        failed = code not in {0, ENDED}
        if failed:
            self._leave(code)
        if failed or (self._stopped and os.environ.get("LOCAL_RANK") == "0"):
            rank = f"rank {os.environ.get('RANK', '0')}"
            when = f"{time.monotonic() - self._last:.0f} s after its {'last step' if self._started else 'start'}"
            leave_box(code, self._tail, self._kernel, when, rank)
        return code

    def _leave(self, code: int) -> None:
        """Leave the exit code of the machine's first failure: the others fail because of it."""
        # another process was first, or the disk is full
        with suppress(OSError), Path(f"{self._folder}.code").open("x") as file:
            file.write(str(code))
            if str(code) in os.environ.get("ENDING_EXITS", "").split():
                os.kill(os.getppid(), signal.SIGTERM)

    def _pass_on(self) -> None:
        """Pass the output on until the program has ended; what its children still print is lost."""
        assert self._program.stdout  # noqa: S101 - a pipe
        outputs, rest = [self._program.stdout.fileno()], REST
        while rest > 0:
            ended = self._program.poll() is not None
            if select.select(outputs, [], [], 1.0 if outputs and not ended and self._dead is None else 0.05)[0]:
                block = os.read(outputs[0], 65536)
                if not block:
                    outputs = []  # the program may have closed it, and go on
                sys.stdout.buffer.write(block)
                sys.stdout.buffer.flush()
                self._tail = (self._tail + block)[-KEPT:]
                self._look(block)
                rest -= max(len(block), REST // 64) if ended else 0  # a child may print on, a little at a time
            elif ended:
                return
            now = time.monotonic()
            if self._dead is not None and now > self._dead:
                self._program.kill()
            elif self._abortion is not None and now > self._abortion:
                self._abortion = None
                self._program.send_signal(signal.SIGABRT)
            elif self._due is not None and self._dead is None and now > self._due:
                if self._started or nothing_started():
                    self._end_machine()
                self._due = None

    def _look(self, block: bytes) -> None:
        """Look for a step in the lines that a block completes; carriage returns end those of a bar."""
        *lines, rest = re.split(rb"[\r\n]", self._line + block)
        self._line = rest[-LONGEST:]
        lines = [COLOUR.sub(b"", line) for line in lines]
        if self._limit and any(map(self._step.search, lines)):
            now = self._last = time.monotonic()
            if not self._started:
                with suppress(OSError):  # another rank was first
                    (STARTING / "0").unlink()
            self._started = True
            self._allowed = self._limit.after_step(now)
            self._due = now + self._allowed
        if self._report:
            for line in lines:
                self._report.take(line)

    def _end_machine(self) -> None:
        """End all processes of this machine; each is run by this script."""
        late = f"chartgen: no step for {self._allowed / 60:.3g} min"
        sys.stdout.write(f"{late}: the run hangs, its processes print their stacks and end\n")
        sys.stdout.flush()
        for file in self._folder.iterdir():
            # one that has ended, or has not yet written its number, has no stacks
            with suppress(OSError, IndexError):
                os.kill(int(file.read_text().split()[0]), signal.SIGUSR1)
        self._abort()

    def _stop(self, grace: int) -> None:
        if self._dead is None:  # else it ends soon, and SIGTERM would end it without its stacks
            self._program.terminate()
        self._due = None  # a program that saves takes no steps
        if self._limit and not self._stopped:  # torchrun sends SIGTERM once more
            # Beside a process that failed, the others cannot save: they wait for it in a collective.
            signal.alarm(SPARE if self._failed() else max(grace - SPARE - DUMP, 1))
        self._stopped = True

    def _failed(self) -> bool:
        """Report whether a process of this machine has failed."""
        return Path(f"{self._folder}.code").exists()

    def _abort(self) -> None:
        """Have the process print its stacks and end; in a hang, after a dump if PyTorch makes one."""
        if self._dead is not None:
            return
        now = time.monotonic()
        self._dead = now + DYING
        self._program.send_signal(signal.SIGCONT)  # a stopped process would take no other signal
        with suppress(OSError):  # nobody reads it
            if not self._failed():
                pipe = os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK)
                self._abortion = now + DUMP
                self._dump.unlink(missing_ok=True)  # of an earlier start
                os.write(pipe, b"\n")
                os.close(pipe)
        if self._abortion is None:
            self._program.send_signal(signal.SIGABRT)


def announce_start() -> None:
    """Leave the file of this machine."""
    with suppress(OSError):  # without it, nothing ends here before the first step
        if STARTING.is_symlink():  # of another user
            STARTING.unlink()
        STARTING.mkdir(parents=True, exist_ok=True)
        for name in (BOOT.read_text().strip(), *(["0"] if os.environ.get("RANK") == "0" else [])):
            os.close(os.open(STARTING / name, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK))


def nothing_started() -> bool:
    """Report whether all machines left their files, and no rank has printed a step since rank 0 left its own."""
    with suppress(OSError, ValueError):
        found = [each.name for each in STARTING.iterdir()]
        return "0" in found and len(found) > int(os.environ.get("NNODES", ""))
    return False


def leave_box(code: int, tail: bytes, kernel: int | None, last: str, who: str) -> None:
    """Write what remains of a failed process or machine; a full disk does not change its exit code."""
    try:
        BOX.mkdir(parents=True, exist_ok=True)
        os.close(os.open(BOX, os.O_DIRECTORY | os.O_NOFOLLOW))  # no link of another user
        used = shutil.disk_usage(BOX)
        found = [last, f"disk {used.used} of {used.total} bytes"]
        found += [f"{name} {os.environ.get(name)}" for name in VERSIONS]
        found += [f"{each.name} {each.read_text()}" for each in map(Path, FACTS) if os.access(each, os.R_OK)]
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        pod = os.environ.get("HOSTNAME", "")
        head = f"blackbox: {when} {who} ended with exit code {code} in pod {pod}; {'; '.join(found)}"
        # whoever may write there could have left a link to another file, or a pipe that nobody reads
        (box := BOX / f"{who.replace(' ', '-')}.log").unlink(missing_ok=True)
        with box.open("xb") as file:
            file.write(tail + f"\n{' '.join(head.split())}\n".encode())
            file.flush()  # the pod may end before nvidia-smi answers
            file.writelines((ask_gpus(), *kernel_lines(kernel)))
    except OSError as error:
        sys.stderr.write(f"chartgen: no black box: {error}\n")


def ask_gpus() -> bytes:
    """Return what nvidia-smi reports of the GPUs; nothing without it, or if it does not answer."""
    argv = ["nvidia-smi", f"--query-gpu={GPUS}", "--format=csv"]
    with suppress(OSError, subprocess.TimeoutExpired):
        # not `run`, which waits for it without end: in the driver no signal ends it
        program = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return program.communicate(timeout=SPARE)[0][-KEPT:]
    return b""


def open_kernel() -> int | None:
    """Open the lines of the machine's kernel behind the last one: an Xid of an earlier run would be the cause."""
    with suppress(OSError):  # most containers may not read them
        kernel = os.open(KERNEL, os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(kernel, 0, os.SEEK_END)
        return kernel
    return None


def kernel_lines(kernel: int | None) -> deque[bytes]:
    """Return the last lines of the kernel on GPUs (Xid) since it was opened."""
    found: deque[bytes] = deque(maxlen=20)
    with suppress(OSError):  # also at the end of the lines
        while kernel is not None and (line := os.read(kernel, 8192)):
            if b"NVRM: Xid" in line:
                found.append(line)
    return found


class Report:
    """Sends the lines of steps to the exporter of this machine; an expression finds them."""

    def __init__(self, address: str, rank: str, step: str) -> None:
        self._address, self._rank, self._step = address, rank.encode(), re.compile(step.encode())
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)  # noqa: FBT003 - its only form

    def take(self, line: bytes) -> None:
        """Send a line, if it can be a step's."""
        line = line[:LONGEST]
        if self._step.search(line):
            with suppress(OSError):  # the exporter is busy, or has ended
                self._socket.sendto(self._rank + b" " + line, self._address)


def open_report(address: str) -> Report | None:
    """Open the way to the exporter; a run continues without it."""
    try:
        first = json.loads(Path(__file__).with_name("exporter.json").read_text("utf-8"))["find"][0]
        return Report(address, os.environ["RANK"], first)
    except (OSError, ValueError, LookupError, re.error) as error:
        sys.stderr.write(f"chartgen: no metrics of this process: {error!r}\n")
        return None


if __name__ == "__main__":
    processes, *program = sys.argv[1:]
    if processes == "--ended":
        output, who = Path(PRELUDE).read_bytes()[-KEPT:], f"machine {os.environ['NODE_RANK']}"
        leave_box(int(program[0]), output, None, "without a program", who)
        sys.exit()
    batches, grace = (int(os.environ.get(name) or 0) for name in ("EVALUATION_BATCHES", "GRACE_SECONDS"))
    given = os.environ.get("HANG_SECONDS")
    limit = Limit(float(given) if given else None, batches, grace) if grace else None
    steps = open_report(os.environ["METRICS_SOCKET"]) if "METRICS_SOCKET" in os.environ else None
    watch = Watch(limit, os.environ.get("STEP_LINE", ""), Path(processes), steps)
    sys.exit(watch.run(program, grace))
