"""Hot spares: more pods than machines of the program, and NVIDIA's ft_launcher in place of torchrun.

With `CHARTGEN_SPARES`, a folder that `make spares` fills, machines are lost under the real ft_launcher, with gloo.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pairs import TARGETS
from rendered import chart, job_spec, one, rendered
from selection import cases
from torches import Cluster, spares_python, write_program

from chartgen.checks import check
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
    python = spares_python()
    sets = ("gpusPerNode=1", "network.interface=tcp", "launchers.megatron-lm.program=/opt/trainer.py", "batch.global=8")
    saves = ("checkpoint.enabled=true", "storage.outputs.from=pvc://a")
    found = rendered(*SPARE, *sets, *saves, name="onprem-p8000", files=(), workload="jobset")
    machines = Cluster(tmp_path, found, ("node-a", "node-b", "node-c"), files={"image/opt/trainer.py": TRAINER})
    launcher = f"{python} -m nvidia_resiliency_ext.fault_tolerance.launcher --local-addr=127.0.0.1"
    for machine in machines.machines:
        write_program(machine.folder / "bin/ft_launcher", f'#!/usr/bin/env bash\nexec {launcher} "$@"\n')
        write_program(machine.folder / "bin/python3", f'#!/usr/bin/env bash\nexec {python} "$@"\n')
        machine.variables |= {
            "CUDA_VISIBLE_DEVICES": "",
            "GLOO_SOCKET_IFNAME": "lo",
            "CHECKPOINT_DIRECTORY": str(tmp_path),
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
