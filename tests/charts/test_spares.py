"""Hot spares: more pods than machines of the program, and NVIDIA's ft_launcher in place of torchrun.

With `CHARTGEN_SPARES`, a folder that `make spares` fills, machines are lost under the real ft_launcher, with gloo.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from pairs import TARGETS
from pod_runner import TARGET
from rendered import NAMESPACE, RELEASE, Objects, chart, job_spec, one, rendered
from selection import cases
from torches import Cluster, spares_python, write_program
from userlib import composed, write

from chartgen.checks import check
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import load_values
from chartgen.library.workloads.common.files.examine import UNFIT
from chartgen.releases.plan import plan_release
from chartgen.releases.status.spares import first_round, waits

SPARE = ("nodes=2", "run.spares=1")
TRAINER = """\
import os, time
from pathlib import Path
import torch
from torch import distributed
distributed.init_process_group("gloo")
rank, file = distributed.get_rank(), Path(os.environ["CHECKPOINT_DIRECTORY"], "step")
step = int(file.read_text()) if file.exists() else 0
file.with_name(f"pid-{rank}").write_text(str(os.getpid()))
print(f"rank {rank} of {distributed.get_world_size()} starts at step {step}", flush=True)
while step < 300:
    distributed.all_reduce(torch.ones(1))
    step += 1
    time.sleep(0.05)
    if rank == 0 and step % 10 == 0:
        file.with_suffix(".part").write_text(str(step))
        file.with_suffix(".part").replace(file)
print(f"rank {rank} is done", flush=True)
distributed.destroy_process_group()
"""
START = re.compile(r"^rank (\d) of 2 starts at step (\d+)", re.MULTILINE)


@pytest.mark.parametrize("workload", ["job", "jobset"])
@pytest.mark.parametrize(
    "name", cases([each for each in TARGETS if each != "oke-h100"], ("gke-a3mega", "gke-a4x", "onprem-p8000"))
)
def test_a_run_has_a_pod_for_each_spare(name: str, workload: str) -> None:
    interface = ("network.interface=tcp",) if name == "onprem-p8000" else ()  # which it leaves to its owner
    found = rendered(*SPARE, *interface, name=name, files=(), workload=workload)
    job = job_spec(found)
    assert (job["parallelism"], job["completions"], job["maxFailedIndexes"], job["backoffLimitPerIndex"]) == (
        3,
        3,
        1,
        0,
    )
    assert job["successPolicy"] == {"rules": [{"succeededCount": 1}]}
    assert "backoffLimit" not in job
    env = {each["name"]: each.get("value") for each in job["template"]["spec"]["containers"][0]["env"]}
    assert env["NNODES"] == "2"
    assert '--nnodes="$NNODES:3"' in str(one("ConfigMap", found)["data"]["start.sh"])


@pytest.mark.parametrize(("name", "expected"), [("gke-a4x", True), ("eks-p6e-gb200", True), ("gke-a4", False)])
def test_whole_slices_of_a_rack_of_nvlink_are_replaced(name: str, expected: bool) -> None:
    sets = ("nodes=4", "run.spares=2", "queue.name=a", "topology.sliceSize=2")
    script = one("ConfigMap", rendered(*sets, name=name, files=(), workload="jobset"))["data"]["start.sh"]
    assert ("--ft-segment=2" in script) == expected


@pytest.mark.parametrize(
    ("name", "sets", "rules"),
    [
        ("gke-a4x", "nodes=4,run.spares=1", {"racks-of-spares"}),
        ("eks-p6e-gb200", "nodes=4,run.spares=1", set()),
        ("eks-p6e-gb200", "nodes=18,run.spares=1", {"racks-of-spares"}),
        ("eks-p6e-gb200", "nodes=32,run.spares=16,queue.name=a,topology.sliceSize=16", set()),
        ("eks-p6e-gb200", "nodes=31,run.spares=1,queue.name=a,topology.sliceSize=16", {"slices-of-the-machines"}),
        ("gke-a4", "nodes=31,run.spares=1,queue.name=a,topology.sliceSize=16", set()),
    ],
)
def test_spares_of_other_racks_are_named(name: str, sets: str, rules: set[str]) -> None:
    found = check(chart("jobset", name), load_values((), set_values=(sets,)))
    assert {each.rule for each in found} & {"racks-of-spares", "slices-of-the-machines"} == rules


def test_a_run_without_spares_starts_with_torchrun() -> None:
    found = rendered("nodes=2", files=(), workload="jobset")
    assert "ft_launcher" not in one("ConfigMap", found)["data"]["start.sh"]
    assert job_spec(found)["backoffLimit"] == 0


@pytest.mark.parametrize(
    ("workload", "sets"),
    [
        ("pytorchjob", ()),
        ("trainjob", ()),
        ("mpijob", ()),
        ("job", ("nodes=1",)),
        ("job", ("launcher=nccl-test",)),
    ],
)
def test_spares_that_nothing_uses_are_refused(workload: str, sets: tuple[str, ...]) -> None:
    values = load_values((), set_values=(*SPARE, "storage.outputs.from=pvc://a", *sets))
    found = check(chart(workload, "onprem-p8000"), values)
    assert "spares-of-torchrun" in {each.rule for each in found if each.severity == "error"}


def test_kueue_places_spares_in_slices_too() -> None:
    """It refuses a number of pods that the size of a slice does not divide (kueue ff69552, tas_flavor_snapshot.go)."""
    sets = ("nodes=3", "run.spares=1", "queue.name=a", "topology.sliceLevel=cloud.google.com/gce-topology-rack")
    for size, expected in ((3, True), (2, False)):
        found = check(chart("jobset", "gke-a4"), load_values((), set_values=(*sets, f"topology.sliceSize={size}")))
        assert ("slices-of-the-machines" in {each.rule for each in found}) == expected


@pytest.mark.parametrize(
    ("image", "rule", "severity"),
    [
        ("nvcr.io/nvidia/nemo:26.04", "launcher-of-spares", "error"),
        ("nvcr.io/nvidia/nemo:26.06", "", ""),
        ("example.com/own:1", "spares-of-an-unknown-image", "unchecked"),
    ],
)
def test_the_image_must_contain_the_launcher(image: str, rule: str, severity: str) -> None:
    sets = (*SPARE, "storage.outputs.from=pvc://a", f"launchers.megatron-lm.image={image}")
    found = check(chart("jobset", "onprem-p8000"), load_values((), set_values=sets))
    assert {(each.rule, each.severity) for each in found if "spares" in each.rule} == (
        {(rule, severity)} if rule else set()
    )


def test_the_plan_counts_spares_and_trains_without_them() -> None:
    image = "launchers.megatron-lm.image=nvcr.io/nvidia/nemo:26.06"
    values = load_values((), set_values=(*SPARE, "storage.outputs.from=pvc://a", "network.interface=tcp", image))
    found = plan_release(chart("jobset", "onprem-p8000"), values, "run", "ml")
    assert (found.nodes, found.spares, found.gpus, found.parallelism["data"]) == (3, 1, 24, 16)


# -- under the real ft_launcher


@pytest.fixture
def run(tmp_path: Path) -> Cluster:
    """Three machines of a run of two; none has started."""
    spares_python()
    sets = ("gpusPerNode=1", "network.interface=tcp", "launchers.megatron-lm.program=/opt/trainer.py", "batch.global=8")
    saves = ("checkpoint.enabled=true", "storage.outputs.from=pvc://a")
    found = rendered(*SPARE, *sets, *saves, name="onprem-p8000", files=(), workload="jobset")
    return cluster(tmp_path, found, ("node-a", "node-b", "node-c"))


def cluster(folder: Path, found: Objects, names: tuple[str, ...]) -> Cluster:
    """Machines with the real ft_launcher."""
    python = spares_python()
    machines = Cluster(folder, found, names, files={"image/opt/trainer.py": TRAINER})
    # as its own script: with `-m` it does not know its exception for a machine that leaves
    main = "from nvidia_resiliency_ext.fault_tolerance.launcher import main; main()"
    launcher = f"{python} -c '{main}' --local-addr=127.0.0.1"
    for machine in machines.machines:
        write_program(
            machine.folder / "bin/ft_launcher",
            f'#!/usr/bin/env bash\necho $$ >{machine.folder}/launcher\nexec {launcher} "$@"\n',
        )
        write_program(machine.folder / "bin/python3", f'#!/usr/bin/env bash\nexec {python} "$@"\n')
        machine.variables |= {
            "CUDA_VISIBLE_DEVICES": "",
            "GLOO_SOCKET_IFNAME": "lo",
            "RUN_DIRECTORY": str(folder),
            "CHECKPOINT_DIRECTORY": str(folder),
        }
    return machines


def starts(log: str) -> list[tuple[int, int]]:
    """Rank and first step of each start that a machine logged."""
    return [(int(rank), int(step)) for rank, step in START.findall(log)]


def train(machines: Cluster) -> list[int]:
    """Start all machines, wait until they train, and return the numbers of those that do."""
    machines.start()
    machines.wait_for(
        lambda: (
            sum(map(bool, map(starts, machines.logs()))) == 2 and (machines.machines[0].folder.parent / "step").exists()
        )
    )
    return [at for at, log in enumerate(machines.logs()) if starts(log)]


@pytest.mark.full
def test_a_spare_takes_the_place_of_a_lost_machine(run: Cluster) -> None:
    with run as machines:
        first = train(machines)
        (spare,), lost = {0, 1, 2} - {*first}, first[-1]
        machines.wait_for(lambda: waits(machines.logs()[spare].splitlines()))
        assert not any(waits(machines.logs()[at].splitlines()) for at in first)
        machines.machines[lost].kill()
        codes, logs = machines.finish()
    assert [code for at, code in enumerate(codes) if at != lost] == [0, 0], logs
    assert [first_round(log.splitlines()) > 0 for log in logs] == [at == spare for at in range(3)]
    again = [starts(log)[-1] for at, log in enumerate(logs) if at != lost]
    assert {rank for rank, _ in again} == {0, 1}
    assert min(step for _, step in again) >= 10
    assert sum("is done" in log for log in logs) == 2


@pytest.mark.full
def test_a_slice_of_another_rack_takes_the_place_of_one_that_lost_a_machine(tmp_path: Path) -> None:
    spares_python()
    rack = "    fabric: {computeDomain: true}\nfragments: [kueue, "
    target = TARGET.replace("workload: job\n", "workload: jobset\n").replace("fragments: [", rack)
    write(tmp_path, {"targets/lab.yaml": target})
    own = {"image": "example.com/own:1", "program": "/opt/trainer.py"}
    values: dict[str, Any] = {
        "launcher": "torchrun", "nodes": 4, "gpusPerNode": 1, "launchers": {"torchrun": own}, "queue": {"name": "a"},
        "topology": {"sliceSize": 2}, "run": {"spares": 2, "examine": "off"},
    }  # fmt: skip
    found = objects(render(composed(tmp_path, "lab"), RELEASE, NAMESPACE, values))
    names = ("a-0", "a-1", "b-0", "b-1", "c-0", "c-1")
    machines = cluster(tmp_path / "machines", found, names)
    for machine in machines.machines:
        text = f"#!/bin/sh\necho '    ClusterUUID   : rack-{machine.folder.name[0]}'\n"
        write_program(machine.folder / "bin/nvidia-smi", text)

    def ranks(start: int) -> dict[str, int]:
        """Machine -> its rank in a start."""
        logs = dict(zip(names, machines.logs(), strict=True))
        every = {name: re.findall(r"^rank (\d) of 4 starts", log, re.MULTILINE) for name, log in logs.items()}
        return {name: int(each[start]) for name, each in every.items() if len(each) > start}

    with machines:
        machines.start()
        machines.wait_for(lambda: len(ranks(0)) == 4 and (tmp_path / "machines/step").exists(), 300)
        first = ranks(0)
        lost = max(first)
        machines.machines[names.index(lost)].kill()
        codes, logs = machines.finish(300)
    trained = {name for name, log in zip(names, logs, strict=True) if "is done" in log}
    assert {name[0] for name in trained} == {*"abc"} - {lost[0]}, logs
    assert len(trained) == 4
    assert [code for name, code in zip(names, codes, strict=True) if name != lost] == [0] * 5


BEATS = """\
import os, time
from pathlib import Path
from nvidia_resiliency_ext.fault_tolerance import RankMonitorClient
client = RankMonitorClient()
client.init_workload_monitoring()
once, done = (Path(os.environ["CHECKPOINT_DIRECTORY"], name) for name in ("hung", "done"))
rank, beats = os.environ["RANK"], 0
print(f"rank {rank} begins", flush=True)
while not done.exists():
    client.send_heartbeat()
    time.sleep(0.2)
    beats += 1
    if rank == "1" and beats == 5 and not once.exists():
        once.touch()
        time.sleep(1000)
    if rank == "1" and beats == 20:  # the first machine, where all meet, waits for it
        done.touch()
client.shutdown_workload_monitoring()
"""


@pytest.mark.full
def test_a_program_without_heartbeats_starts_again(run: Cluster) -> None:
    """It prints no steps, which the watch would await."""
    for machine in run.machines:
        (machine.folder / "image/opt/trainer.py").write_text(BEATS)
        machine.variables["HANG_SECONDS"] = "4"
    with run as machines:
        machines.start()
        codes, logs = machines.finish()
    assert codes == [0, 0, 0], logs
    assert sum("Did not get subsequent heartbeat" in log for log in logs) == 1, logs
    assert sorted(re.findall(r"rank \d begins", "".join(logs))) == ["rank 0 begins"] * 2 + ["rank 1 begins"] * 2


SECTIONS = """\
import os, time
from pathlib import Path
from nvidia_resiliency_ext.fault_tolerance import RankMonitorClient
client, folder = RankMonitorClient(), Path(os.environ["CHECKPOINT_DIRECTORY"])
client.init_workload_monitoring()
print(f"rank {os.environ['RANK']} begins", flush=True)
if os.environ["RANK"] == "1":
    for section in ("setup", "step", "checkpointing", ""):
        if section:
            client.start_section(section)
        if not (once := folder / f"hung-{section}").exists():
            once.touch()
            time.sleep(1000)
        if section:
            client.end_section(section)
    (folder / "done").touch()
while not (folder / "done").exists():
    time.sleep(0.1)
client.shutdown_workload_monitoring()
"""


@pytest.mark.full
def test_a_program_that_hangs_in_a_section_or_between_them_starts_again(run: Cluster) -> None:
    """Sections are those of Megatron-LM's ft_integration.py; the watch awaits no step of this program."""
    for machine in run.machines:
        (machine.folder / "image/opt/trainer.py").write_text(SECTIONS)
        machine.variables |= {"HANG_SECONDS": "4", "FIRST_STEP_SECONDS": "4"}
    with run as machines:
        machines.start()
        codes, logs = machines.finish(400)
    assert codes == [0, 0, 0], logs
    seen = re.findall(r"\[Cycle (\d)\] (Section '\w+'|Was out of section)", "".join(logs))
    assert {int(cycle): what for cycle, what in seen} == {
        0: "Section 'setup'", 1: "Section 'step'", 2: "Section 'checkpointing'", 3: "Was out of section",
    }  # fmt: skip
    assert len(re.findall(r"rank 1 begins", "".join(logs))) == 5


@pytest.mark.full
def test_without_the_first_machine_all_end_and_leave_it_to_the_controller(run: Cluster) -> None:
    with run as machines:
        train(machines)
        machines.machines[0].kill()
        codes, logs = machines.finish()
    assert all(codes), logs


@pytest.mark.full
def test_a_machine_that_is_not_fit_leaves_its_place_to_the_spare(run: Cluster) -> None:
    write_program(run.machines[1].folder / "bin/nvidia-smi", "#!/usr/bin/env bash\nexit 15\n")
    with run as machines:
        machines.start()
        codes, logs = machines.finish()
    assert codes == [0, UNFIT, 0], logs
    assert [len(starts(log)) for log in logs] == [1, 0, 1]


@pytest.mark.full
@pytest.mark.parametrize("rank", [1, 0])
def test_a_machine_that_is_not_fit_any_more_does_not_start_again(run: Cluster, rank: int) -> None:
    """Without the first machine, where all meet, none does: all end, and the controller starts them again."""
    with run as machines:
        first = train(machines)
        (spare,), unfit = {0, 1, 2} - {*first}, first[rank]
        write_program(machines.machines[unfit].folder / "bin/nvidia-smi", "#!/usr/bin/env bash\nexit 15\n")
        launcher = int((machines.machines[spare].folder / "launcher").read_text())
        os.kill(launcher, signal.SIGSTOP)  # the start that follows is of the others
        os.kill(int((machines.machines[0].folder.parent / "pid-0").read_text()), signal.SIGKILL)
        machines.wait_for(lambda: "is not fit" in machines.logs()[unfit])
        os.kill(launcher, signal.SIGCONT)
        codes, logs = machines.finish()
    assert codes[unfit] == UNFIT, logs
    assert f"machine {unfit} () is not fit: nvidia-smi failed with 15" in logs[unfit]
    others = [codes[at] for at in range(3) if at != unfit]
    assert others == [0, 0] if rank else all(others), logs


@pytest.mark.full
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_fails_at_every_start_is_no_success(run: Cluster, rank: int) -> None:
    """A Job with a spare counts one failed pod, and is complete when all but the first have ended well."""
    broken = f"if rank == {rank} and step % 10 == 5:\n        raise RuntimeError('bad data')\n    time.sleep(0.05)"
    for machine in run.machines:
        write(machine.folder / "image/opt", {"trainer.py": TRAINER.replace("time.sleep(0.05)", broken)})
    with run as machines:
        machines.start()
        codes, logs = machines.finish()
    assert 0 not in codes, logs
