"""Real PyTorch for tests: a Python that has it with gloo, its torchrun as images have it, and machines that meet."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import TracebackType

import pytest
from pod_runner import Machine
from rendered import Objects

# CI installs Debian's package (.ci/run), which is for the system's Python; PyPI's wheels bring gigabytes of CUDA.
SYSTEM = "/usr/bin/python3"
MISSING = f"PyTorch with gloo is not installed: apt-get install --no-install-recommends python3-torch ({SYSTEM})"
_ASK = "import torch.distributed as d; assert d.is_gloo_available(); print(d.torch.__version__)"
# torchrun of PyTorch before 2.0, made to understand what charts tell newer ones: options written with dashes,
# --local-addr (a machine calls itself so; before, by its host's name), and to look after its processes as often.
# Python 3.11 lists no zeros among flags any more, which 1.13 looks for.
_TORCHRUN = """\
import socket, sys
import torch
from torch.distributed import run
from torch.distributed.elastic.multiprocessing import Std
if int(torch.__version__.split(".")[0]) < 2:
    until = sys.argv.index("--no-python")
    options = [word.partition("=") for word in sys.argv[1:until]]
    for _, _, name in (each for each in options if each[0] == "--local-addr"):
        socket.getfqdn = lambda *_, name=name: name
    words = [name[2:].replace("-", "_") + equals + value for name, equals, value in options if name != "--local-addr"]
    sys.argv[1:until + 1] = ["--monitor_interval=0.1", *(f"--{word}" for word in words), "--no_python"]
    Std.from_str = lambda text: Std(int(text))
run.main()
"""
# What gloo of PyTorch 1.13 lacks and nccl-test uses, by means of what it has: the numbers cross gloo all the same.
_NEWER = """\
import sys
if any(word.endswith("/program.py") for word in sys.orig_argv):
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d
    def all_gather_into_tensor(received, sent, group=None):
        dist.all_gather(list(received.chunk(dist.get_world_size(group))), sent, group)
    def reduce_scatter_tensor(received, sent, group=None):
        total = sent.clone()
        dist.all_reduce(total, group=group)
        received.copy_(total.chunk(dist.get_world_size(group))[dist.get_rank(group)])
    def new_group(ranks, use_local_synchronization):
        at, store, name = ranks.index(dist.get_rank()), c10d._get_default_store(), "-".join(map(str, ranks))
        group = c10d._new_process_group_helper(len(ranks), at, ranks, "gloo", store, group_name=name)
        c10d._pg_group_ranks[group] = {rank: place for place, rank in enumerate(ranks)}
        return group
    dist.all_gather_into_tensor, dist.reduce_scatter_tensor = all_gather_into_tensor, reduce_scatter_tensor
    dist.new_group = new_group
"""
# Stands for torchrun where its agent, which imports PyTorch once more on each machine, is not what is tested.
_LIGHT = """\
export RANK=$NODE_RANK WORLD_SIZE=$NNODES LOCAL_RANK=0 LOCAL_WORLD_SIZE=1
echo $$ >"$RUN_DIRECTORY/pid"
until [[ $1 == --no-python ]]; do
  if [[ $1 == --master-port=* ]]; then export MASTER_PORT=${1#*=}; fi
  shift
done
shift
exec "$@"
"""


@lru_cache
def found() -> tuple[str, str]:
    """A Python with PyTorch and gloo, and PyTorch's version: this one, the one that .venv was made of, the system's."""
    for python in (sys.executable, f"{sys.base_prefix}/bin/python3", SYSTEM):
        if Path(python).exists():
            asked = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, check=False, timeout=120)
            if asked.returncode == 0:
                return python, asked.stdout.strip()
    return "", ""


def torch_python() -> str:
    """The Python with PyTorch; without one the test is skipped, with the reason."""
    python, _ = found()
    if not python:
        pytest.skip(MISSING)
    return python


def spares_python() -> Path:
    """The Python of a folder of `make spares`; without one the test is skipped, with the reason."""
    python = Path(os.environ.get("CHARTGEN_SPARES", "/nowhere"), "bin/python")
    if not python.exists():
        pytest.skip("CHARTGEN_SPARES is not a folder of `make spares`")
    return python


def is_old() -> bool:
    """Whether gloo lacks what `_NEWER` adds; 2.1 brought groups that only their members make."""
    major, minor = found()[1].split(".")[:2]
    return (int(major), int(minor)) < (2, 1)


def write_program(path: Path, text: str) -> None:
    """Write a program that can be run by its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


class Cluster:
    """Machines of a run, each a folder with its processes, whose programs meet on this machine.

    Args:
        folder: Below it each machine has its own, of its name.
        objects: What was rendered for the run.
        names: The machines.
        light: Whether a process stands for torchrun and is its only rank.
        newer: Whether PyTorch is made to do what nccl-test asks of a newer one's gloo.
        files: Files of the image, such as programs below opt/.
        nccl: What NCCL says of the machine; without GPUs, it is not there to say it.
    """

    def __init__(
        self,
        folder: Path,
        objects: Objects,
        names: tuple[str, ...],
        *,
        light: bool = False,
        newer: bool = True,
        files: Mapping[str, str] | None = None,
        nccl: str = "",
    ) -> None:
        python = torch_python()
        self.objects = objects
        self.machines = [Machine(folder / name, nccl=nccl) for name in names]
        self.running: list[subprocess.Popen[str]] = []
        port = str(_free_ports())
        for machine, name in zip(self.machines, names, strict=True):
            here = machine.folder
            torchrun = f"#!/usr/bin/env bash\n{_LIGHT}" if light else f"#!{python}\n{_TORCHRUN}"
            write_program(here / "bin/torchrun", torchrun)
            write_program(here / "bin/python3", f'#!/usr/bin/env bash\nexec {python} "$@"\n')
            for path, text in (files or {}).items():
                write_program(here / path, text)
            (here / "modules").mkdir()
            if newer and is_old():
                (here / "modules/sitecustomize.py").write_text(_NEWER)
            machine.variables |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "NODE_NAME": name}
            machine.variables |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(here / "modules")}
            if nccl:
                (here / "said").write_text(nccl)
                machine.variables["CHARTGEN_NCCL_LOG"] = str(here / "said")

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill whatever still runs."""
        for machine in self.machines:
            machine.kill()
        for process in self.running:
            process.wait()

    def start(self, late: float = 0) -> None:
        """Start all machines, the last number first; number 0, where all meet, comes some seconds after the others."""
        self.running = []
        for rank, machine in reversed([*enumerate(self.machines)]):
            time.sleep(0 if rank else late)
            with (machine.folder / "log").open("w") as file:
                self.running.insert(0, machine.start(self.objects, rank=rank, stdout=file))

    def logs(self) -> list[str]:
        """What the machines have printed so far."""
        return [(machine.folder / "log").read_text() for machine in self.machines]

    def wait_for(self, condition: Callable[[], object], seconds: float = 180) -> None:
        """Wait until something has happened; no machine may end before."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert all(process.poll() is None for process in self.running), self.logs()
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.02)

    def stop(self, *ranks: int) -> None:
        """Stop machines as Kubernetes does."""
        for rank in ranks:
            self.running[rank].terminate()

    def finish(self, seconds: float = 180) -> tuple[list[int], list[str]]:
        """Wait for all machines; give their exit codes and logs."""
        deadline = time.monotonic() + seconds
        while any(process.poll() is None for process in self.running):
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.02)
        return [process.returncode for process in self.running], self.logs()


def _free_ports() -> int:
    """Find a port that is free with the one behind it, where the machines meet before they train."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            try:
                second.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port
