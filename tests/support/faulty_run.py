"""A run of 8 machines and a spare, which random faults meet: the charts' start scripts below NVIDIA's ft_launcher.

What Kubernetes does is written here: a Job whose machines fail, and a JobSet that starts all of them again. Machines
are folders with processes. The program computes nothing and saves every 10 steps; it meets by gloo, or by sockets alone
where the time to load PyTorch eight times on a few cores is not what is asked for.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rendered import rendered
from torches import Cluster, write_program

from chartgen.data.exits import final_exits
from chartgen.releases.why.explanation import explain_files

NODES, INTERVAL, HANG = 8, 10, 5
PROGRAM = f"""\
import errno, os, socket, sys, time
from pathlib import Path
run, folder = Path(os.environ["RUN_DIRECTORY"]), Path(os.environ["CHECKPOINT_DIRECTORY"])
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
def told(text):
    sys.stdout.write(f"{{text}} at {{time.time():.2f}}\\n")
    sys.stdout.flush()
(run / f"pid-{{rank}}").write_text(str(os.getpid()))
if os.environ["MEET"] == "gloo":
    import torch
    from torch import distributed
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    meet = lambda: distributed.all_reduce(torch.ones(1))
    diverge = lambda: distributed.broadcast(torch.ones(1), (rank + 1) % world)
else:
    place = ("127.0.0.1", int(os.environ["PROGRAM_PORT"]))
    if rank == 0:
        with socket.create_server(place, backlog=world) as server:
            ends = [server.accept()[0] for _ in range(world - 1)]
    else:
        while True:
            try:
                ends = [socket.create_connection(place)]
                break
            except OSError:
                time.sleep(0.05)
    def receive(end):
        if not end.recv(1):
            raise RuntimeError("Connection closed by peer")
    def meet():
        if rank:
            ends[0].sendall(b"x")
        for end in ends:
            receive(end)
        if not rank:
            for end in ends:
                end.sendall(b"x")
    diverge = lambda: receive(ends[0])
saved = sorted(folder.glob("step-*[0-9]"))
text = saved[-1].read_text() if saved else "0"
if not text:
    raise RuntimeError("PytorchStreamReader failed reading zip archive: failed finding central directory")
told(f"rank {{rank}} resumes behind {{int(text)}} in {{os.getpid()}}")
for step in range(int(text) + 1, 1_000_000):
    fault = run / f"fault-{{rank}}"
    name = fault.read_text() if fault.exists() else ""
    if name == "nan":
        sys.exit(17)
    if name == "diverge":
        fault.unlink()
        diverge()
    meet()
    time.sleep(0.1)
    if rank == 0:
        told(f"step: {{step}} in {{os.getpid()}}")
    if rank == 0 and step % {INTERVAL} == 0:
        if (run / "full").exists():
            raise OSError(errno.ENOSPC, "No space left on device", str(folder))
        (folder / "part").write_text(str(step))
        (folder / "part").replace(folder / f"step-{{step:07}}")
        for old in saved[:-2]:
            old.unlink(missing_ok=True)
        saved = sorted(folder.glob("step-*[0-9]"))
"""
STEP = re.compile(r"^step: (\d+) in (\d+) at ([\d.]+)$", re.MULTILINE)
START = re.compile(r"^rank 0 resumes behind (\d+) in (\d+) at ([\d.]+)$", re.MULTILINE)
# Each fault -> its share of 100, and how a run that it meets ends; None = it goes on.
FAULTS: dict[str, tuple[int, tuple[int, str] | None]] = {
    "kill": (19, None),
    "stop": (14, None),
    "machine gone": (18, None),
    "store host gone": (14, None),
    "diverging rank": (14, None),
    "taken port": (3, None),
    "full disk": (6, (93, "disk-full")),
    "corrupt checkpoint": (6, (93, "bad-checkpoint")),
    "nan": (6, (17, "not-a-number")),
}


@dataclass(frozen=True)
class Incident:
    """What became of a run that a fault met.

    Args:
        seconds: From the fault to the next step; None = it ended.
        lost: Steps that were done again.
        starts: How often the whole run, and the processes of a run, started until then.
        end: Exit code and cause of a run that ended.
    """

    fault: str
    seconds: float | None
    lost: int
    starts: tuple[int, int]
    end: tuple[int, str] | None

    @property
    def is_right(self) -> bool:
        """Whether the run went on with little lost, or ended for the right cause, after few starts."""
        return self.end == FAULTS[self.fault][1] and self.lost <= INTERVAL and sum(self.starts) <= 5


class FaultyRun:
    """A run and its controllers.

    Args:
        python: Python of a folder of `make spares`.
        meet: `gloo` or `sockets`.
    """

    def __init__(self, folder: Path, python: Path, meet: str, source: random.Random) -> None:
        sets = (
            f"nodes={NODES}", "run.spares=1", "gpusPerNode=1", "batch.global=8", "network.interface=tcp",
            "launchers.megatron-lm.program=/opt/program.py", "checkpoint.enabled=true", "storage.outputs.from=pvc://a",
        )  # fmt: skip
        found = rendered(*sets, name="onprem-p8000", files=(), workload="jobset")
        names = tuple(f"node-{each}" for each in range(NODES + 1))
        self._cluster = Cluster(folder, found, names, newer=False, files={"image/opt/program.py": PROGRAM})
        self._folder, self._source, self._attempt = folder, source, 0
        self._run = folder / "outputs/run"
        self._saves = self._run / "checkpoints"
        self._saves.mkdir(parents=True)
        launcher = f"{python} -m nvidia_resiliency_ext.fault_tolerance.launcher --local-addr=127.0.0.1"
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        for machine in self._cluster.machines:
            for name, command in {"ft_launcher": launcher, "python3": python}.items():
                write_program(machine.folder / "bin" / name, f'#!/usr/bin/env bash\nexec {command} "$@"\n')
            machine.variables |= {
                "CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo", "MEET": meet, "PROGRAM_PORT": str(port),
                "RUN_DIRECTORY": str(self._run), "CHECKPOINT_DIRECTORY": str(self._saves), "HANG_SECONDS": str(HANG),
            }  # fmt: skip

    def __enter__(self) -> FaultyRun:
        self._start()
        self._wait(lambda: self._found(STEP)[INTERVAL:])
        return self

    def __exit__(self, *_: object) -> None:
        for machine in self._cluster.machines:
            machine.kill()
        for process in self._cluster.running:
            process.wait()

    def _start(self) -> None:
        self.__exit__()
        for machine in self._cluster.machines:
            log = machine.folder / "log"
            if log.exists():
                shutil.copy(log, machine.folder / f"log-{self._attempt - 1}")
            machine.variables["RESTART_ATTEMPT"] = str(self._attempt)
        self._cluster.start()

    def _text(self) -> str:
        return "".join(each.read_text() for each in sorted(self._folder.glob("node-*/log*")))

    def _found(self, pattern: re.Pattern[str]) -> list[tuple[float, int, int]]:
        """Return when each line of this kind was written, its step and its process, in this order."""
        return sorted((float(at), int(step), int(pid)) for step, pid, at in pattern.findall(self._text()))

    def _wait(self, condition: Callable[[], object], seconds: float = 600) -> int | None:
        """Do what the controllers do until something has happened; return the exit code of a run that ended."""
        deadline = time.monotonic() + seconds
        while not condition():
            codes = [process.poll() for process in self._cluster.running]
            if final := [code for code in codes if code in final_exits()]:
                return final[0]
            if sum(code not in (None, 0) for code in codes) > 1:  # more than spares: the Job has failed
                self._attempt += 1
                self._start()
            assert time.monotonic() < deadline, self._text()[-3000:]
            time.sleep(0.1)
        return None

    def _strike(self, fault: str) -> None:
        ranks = range(NODES)
        if fault in ("kill", "stop"):
            pid = int((self._run / f"pid-{self._source.choice(ranks)}").read_text())
            os.kill(pid, signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
        elif fault in ("machine gone", "store host gone"):
            # the spare is not among those that have a rank
            pids = [(self._run / f"pid-{each}").read_text() for each in ranks]
            trains = {Path(f"/proc/{pid}/cwd").readlink() for pid in pids}
            others = [each for each in self._cluster.machines[1:] if each.folder in trains]
            (self._source.choice(others) if fault == "machine gone" else self._cluster.machines[0]).kill()
        elif fault == "full disk":
            (self._run / "full").touch()
        elif fault == "corrupt checkpoint":
            (self._saves / "step-9999999").touch()
            self._strike("kill")
        elif fault == "taken port":
            self._strike("store host gone")
        else:
            (self._run / f"fault-{self._source.choice(ranks[1:])}").write_text("nan" if fault == "nan" else "diverge")

    def meet(self, fault: str) -> Incident:
        """Let a fault meet the run, and wait until it goes on or has ended."""
        pid, until = self._found(START)[-1][2], self._source.randint(INTERVAL + 2, 3 * INTERVAL)
        self._wait(lambda: sum(process == pid for *_, process in self._found(STEP)) > until)
        attempt = self._attempt
        port = int(self._cluster.machines[0].variables["MASTER_PORT"])
        at = time.time()
        self._strike(fault)
        if fault == "taken port":
            # the host is gone, and another program takes its port before the restart
            with take(port):
                self._wait(lambda: self._attempt > attempt and self._cluster.running[0].poll() is not None)

        def goes_on() -> bool:
            begun, _, pid = max(self._found(START))
            return FAULTS[fault][1] is None and begun > at and max(self._found(STEP))[2] == pid

        code = self._wait(goes_on)
        beginnings, steps = self._found(START), self._found(STEP)
        starts = (self._attempt - attempt, sum(begun > at for begun, *_ in beginnings))
        if code is not None:
            logs = [each for each in (*self._folder.glob("node-*/log*"), self._run / "blackbox") if each.exists()]
            return Incident(fault, None, 0, starts, (code, explain_files(logs).cause))
        begun, behind, pid = beginnings[-1]
        # no process of an earlier start computes any more
        assert all(process == pid for when, _, process in steps if when > begun), "two runs at once"
        done = max(step for when, step, _ in steps if when < begun)
        return Incident(fault, min(when for when, *_ in steps if when > begun) - at, done - behind, starts, None)


def take(port: int) -> socket.socket:
    """Take a port as soon as a process that is being killed has left it."""
    while True:
        with suppress(OSError):
            return socket.create_server(("127.0.0.1", port))
        time.sleep(0.01)


def live(
    faults: list[str], python: Path, meet: str, source: random.Random, tell: Callable[[Incident], None]
) -> list[Incident]:
    """Let the faults meet a run, and another one after each that has ended; tell and return what became of them."""
    found: list[Incident] = []
    while len(found) < len(faults):
        with tempfile.TemporaryDirectory() as folder, FaultyRun(Path(folder), python, meet, source) as run:
            while len(found) < len(faults):
                found.append(run.meet(faults[len(found)]))
                tell(found[-1])
                if found[-1].end:
                    break
    return found
