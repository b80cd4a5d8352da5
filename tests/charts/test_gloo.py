"""Training with real PyTorch and no GPU: start scripts of charts, real torchrun, several machines, gloo for NCCL.

The trainer is a small one that does as Megatron-LM does: its lines, its checkpoints, its ways to fail.
"""

from __future__ import annotations

import json
import os
import re
import signal
from itertools import pairwise
from pathlib import Path

import profiles
import pytest
from nccllogs import TCP, TCPX, TCPXO, efa, verbs
from process_helpers import gone
from rendered import Objects, rendered
from torches import Cluster
from userlib import chartgen

from chartgen.releases.status.failure import telling

# Descent along the gradient of a fixed problem: each loss is below the one before, so a restart from scratch shows.
TRAINER = """\
import os, signal, sys, time
from datetime import datetime
from pathlib import Path
import torch
from torch import distributed

def option(name, default=None):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default

def say(line):
    os.write(1, f"{line}\\n".encode())  # at once: ranks of one machine share the log

stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
distributed.init_process_group("gloo")
rank, world, last = distributed.get_rank(), distributed.get_world_size(), int(option("--train-iters"))
say(f"rank {rank} of {world} is process {os.getpid()} of {os.environ['NODE_NAME']}")
if "--data-path" in sys.argv and not Path(option("--data-path") + ".idx").exists():
    raise FileNotFoundError(f"One or both of the .idx and .bin files cannot be found at {option('--data-path')}")
torch.manual_seed(rank)
samples = torch.randn(64, 8, dtype=torch.double)
torch.manual_seed(world)
model = torch.nn.Linear(8, 1, dtype=torch.double)
first, path = 0, Path(option("--save", "/nowhere")) / f"rank-{rank}.pt"
if path.exists():
    saved = torch.load(path)
    first = saved["iteration"]
    model.load_state_dict(saved["model"])
began = time.monotonic()
for iteration in range(first + 1, last + 1):
    loss = (model(samples) - samples.sum(1, keepdim=True)).square().mean()
    model.zero_grad()
    loss.backward()
    told = torch.stack([loss.detach(), torch.tensor(float(bool(stopped)), dtype=torch.double)])
    for tensor in [told, *(each.grad for each in model.parameters())]:
        distributed.all_reduce(tensor)
        tensor /= world
    with torch.no_grad():
        for each in model.parameters():
            each -= 0.005 * each.grad
    time.sleep(0.02)
    now = time.monotonic()
    if rank == world - 1:
        say(f" [{datetime.now():%Y-%m-%d %H:%M:%S.%f}] iteration {iteration:8d}/{last:8d} |"
              f" consumed samples: {iteration * int(option('--global-batch-size')):12d} |"
              f" elapsed time per iteration (ms): {(now - began) * 1e3:.1f} | learning rate: 5.000000E-03 |"
              f" global batch size: {int(option('--global-batch-size')):5d} | lm loss: {told[0]:.6E} |"
              " loss scale: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |")
    began = now
    if told[1]:
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"iteration": iteration, "model": model.state_dict()}, path)
        say(f"rank {rank} has saved iteration {iteration}")
        say("exiting program after receiving SIGTERM.")
        sys.exit()
"""
TWO, THREE = ("node-a", "node-b"), ("node-a", "node-b", "node-c")
LOSS = re.compile(r"iteration +(\d+)/.*lm loss: (\S+)")
IB = "network.interface=infiniband"
PLUGIN = "image/opt/aws-ofi-nccl/lib/libnccl-net.so"


def promising(*sets: str, gpus: int, nodes: int = 2, name: str, workload: str = "job") -> Objects:
    """The objects of a run of the trainer by a chart that promises a network."""
    size = (f"nodes={nodes}", f"gpusPerNode={gpus}", "launchers.megatron-lm.program=/opt/trainer.py", "batch.global=48")
    return rendered(*size, *sets, name=name, files=(), workload=workload)


def plain(*sets: str, gpus: int = 2, nodes: int = 2, workload: str = "job") -> Objects:
    """The objects of a run that trains over TCP, as told: nothing is promised, and nothing is compared."""
    return promising("network.interface=tcp", *sets, gpus=gpus, nodes=nodes, name="onprem-p8000", workload=workload)


def cluster(folder: Path, objects: Objects, names: tuple[str, ...] = TWO, *, said: str = "") -> Cluster:
    """Machines with the trainer and the plugin for EFA in their image, and what NCCL says there."""
    return Cluster(folder, objects, names, files={"image/opt/trainer.py": TRAINER, PLUGIN: ""}, nccl=said)


def losses(log: str) -> dict[int, float]:
    """Loss by iteration."""
    return {int(iteration): float(loss) for iteration, loss in LOSS.findall(log)}


def processes(log: str) -> dict[int, int]:
    """Numbers of a machine's processes by rank."""
    return {int(rank): int(pid) for rank, pid in re.findall(r"^rank (\d+) of \d+ is process (\d+)", log, re.MULTILINE)}


# -- machines meet


@pytest.mark.parametrize(
    ("workload", "names", "gpus"), [("job", THREE, 2), ("pytorchjob", TWO, 1)], ids=["static", "elastic"]
)
def test_machines_meet_and_train(tmp_path: Path, workload: str, names: tuple[str, ...], gpus: int) -> None:
    found = plain("steps=8", nodes=len(names), gpus=gpus, workload=workload)
    with cluster(tmp_path, found, names) as machines:
        # late enough that the order of their processes' numbers, too, is the other way round
        machines.start(late=1)
        codes, logs = machines.finish()
    assert codes == [0] * len(names), logs
    # ranks follow the numbers of the machines, as logs and topology do
    assert [sorted(processes(log)) for log in logs] == [
        [*range(gpus * at, gpus * at + gpus)] for at in range(len(names))
    ]
    assert [*losses(logs[-1])] == [*range(1, 9)]
    assert not any(map(losses, logs[:-1]))
    shown = chartgen("metrics", tmp_path / names[-1] / "log", "--window", "all", "--output", "json")
    assert json.loads(shown.stdout)["steps"] == {"logged": 8, "counted": 8, "last": 8, "planned": 8}


def test_a_late_machine_is_waited_for_and_the_transport_is_compared_first(tmp_path: Path) -> None:
    found = promising("steps=3", gpus=1, name="eks-p5")
    with cluster(tmp_path, found, said=efa(4)) as machines:
        machines.start(late=3)
        codes, logs = machines.finish()
    assert codes == [0, 0], logs
    for log in logs:
        lines = [line for line in log.splitlines() if re.match(r"transport: |rank \d", line)]
        assert lines[0] == "transport: EFA as promised, 4 adapters"
        assert len(lines) == 2
    assert max(losses(logs[1])) == 3


# -- signals and failures


def test_sigterm_saves_and_the_second_start_goes_on(tmp_path: Path) -> None:
    saved = [0]
    curve: dict[int, float] = {}
    with cluster(
        tmp_path, plain("steps=100000", "checkpoint.enabled=true", "storage.outputs.from=pvc://results")
    ) as machines:
        # of a machine that nobody stops, only the program knows that the others are stopped
        for stopped, expected in (((0, 1), [143, 143]), ((1,), [0, 143])):
            machines.start()
            machines.wait_for(lambda: len(losses(machines.logs()[1])) > 10)
            machines.stop(*stopped)
            codes, logs = machines.finish()
            assert codes == expected, logs
            told = [re.findall(r"rank (\d) has saved iteration (\d+)", log) for log in logs]
            assert [sorted(rank for rank, _ in each) for each in told] == [["0", "1"], ["2", "3"]]
            found = losses(logs[1])
            assert {int(iteration) for each in told for _, iteration in each} == {max(found)}
            assert min(found) == saved[-1] + 1
            saved.append(max(found))
            curve |= found
    assert all(later < before for before, later in pairwise(curve.values()))


def test_a_killed_rank_ends_both_machines_and_is_named_last(tmp_path: Path) -> None:
    with cluster(tmp_path, plain("steps=100000")) as machines:
        machines.start()
        machines.wait_for(lambda: len(losses(machines.logs()[1])) > 3)
        pids = processes("".join(machines.logs()))
        os.kill(pids[2], signal.SIGKILL)
        codes, logs = machines.finish(60)
    assert codes == [1, 128 + signal.SIGKILL], logs
    assert gone([*pids.values()])
    root = re.compile(
        r"Root Cause \(first observed failure\):\n\[0\]:(?:\n .*)*?\n +rank +: (\d) .*\n +exitcode +: (-?\d+) "
    )
    (first,), (second,) = (root.findall("\n".join(log.splitlines()[-9:])) for log in logs)
    assert second == ("2", "137")
    # the other machine's torchrun knows of its own processes only: they have lost their partner
    assert first[0] in "01"
    assert first[1] == "1"
    assert re.search(r"RuntimeError: .*(closed by peer|reset by peer)", logs[0], re.IGNORECASE)


def test_a_missing_data_set_ends_the_run_and_status_quotes_the_line(tmp_path: Path) -> None:
    found = plain("steps=8", "data.name=absent", "storage.data.from=pvc://data", gpus=1)
    with cluster(tmp_path, found) as machines:
        machines.start()
        codes, logs = machines.finish(60)
    assert codes == [1, 1], logs
    for log, name in zip(logs, TWO, strict=True):
        files = tmp_path / name / "data/absent_text_document"
        line = f"FileNotFoundError: One or both of the .idx and .bin files cannot be found at {files}"
        assert telling(log.splitlines()[-200:], 10)[-1] == line


# -- the transport contract


def meeting(folder: Path, name: str, said: str, *sets: str) -> tuple[list[int], list[str]]:
    """Let two machines of one rank each meet over gloo, compare what NCCL says, and start a program."""
    # those of Google need all 8 GPUs of a machine, for which one rank stands
    text = json.dumps(promising(*sets, gpus=8 if name.startswith("gke") else 1, name=name))
    found = json.loads(text.replace("/dev/infiniband/", f"{folder}/"))
    (folder / "uverbs0").touch()
    files = {
        # what init containers install, and a machine's own ldconfig needs root for
        "usr/local/nccl-plugin/lib64/nccl-env-profile.sh": profiles.script(),
        "bin/ldconfig": "#!/bin/sh\n",
        "image/opt/trainer.py": "print('training')\n",
    }
    files |= {"usr/local/tcpx/lib64/libnccl-net-tcpx.so": "", PLUGIN: ""}
    with Cluster(folder, found, TWO, light=True, files=files, nccl=said) as machines:
        machines.start()
        return machines.finish(60)


@pytest.mark.parametrize(
    ("name", "said", "sets", "line"),
    [
        ("gke-a3mega", TCPXO, (), "TCPXO (FasTrak) as promised"),
        ("gke-a3high", TCPX, (), "TCPX (GPUDirectTCPX) as promised"),
        ("eks-p5", efa(4), (), "EFA as promised, 4 adapters"),
        ("onprem-p8000", verbs("IB", 1), (IB,), "InfiniBand as promised, 1 adapters"),
    ],
    ids=["a3mega", "a3high", "p5", "onprem"],
)
def test_machines_of_each_fabric_meet_and_go_on(
    tmp_path: Path, name: str, said: str, sets: tuple[str, ...], line: str
) -> None:
    codes, logs = meeting(tmp_path, name, said, *sets)
    assert codes == [0, 0], logs
    for log in logs:
        assert log.splitlines()[-2:] == [f"transport: {line}", "training"]


@pytest.mark.parametrize(
    ("name", "promise"), [("eks-p5", "EFA"), ("gke-a3mega", "TCPXO (FasTrak)")], ids=["p5", "a3mega"]
)
def test_without_the_promised_fabric_nothing_trains(tmp_path: Path, name: str, promise: str) -> None:
    codes, logs = meeting(tmp_path, name, TCP)
    assert codes == [78, 78], logs
    for log in logs:
        (line,) = (line for line in log.splitlines() if not line.startswith("examine: "))
        why = "NCCL uses Socket on eth0: NET/Plugin not found: libnccl-net.so; see "
        assert line.startswith(f"transport: promised {promise}, {why}")
        assert telling([line], 1) == [line]
