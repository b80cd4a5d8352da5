"""The on-premises chart: one machine or several with InfiniBand, data on NFS, no labels of a cloud."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nccllogs import verbs
from pod_runner import Machine
from rendered import (
    VALUES,
    Objects,
    chart,
    container,
    env,
    mounts,
    one,
    pod,
    rendered,
    rendered_setup,
    security,
    setup_chart,
    target,
    volumes,
)
from selection import HELMS

from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.rehearsal import engines

ONPREM = "onprem-p8000"
SITE = (VALUES / "site.onprem-p8000.example.yaml",)
INFINIBAND = ("nodes=2", "network.interface=infiniband")


def run(*sets: str, files: tuple[Path, ...] = ()) -> Objects:
    return rendered(*sets, files=files, name=ONPREM)


def test_one_machine_needs_no_network_no_label_and_no_privilege() -> None:
    for files in ((), SITE):
        found = run(files=files)
        assert container(found)["resources"]["limits"] == {"nvidia.com/gpu": "8"}
        assert container(found)["securityContext"] == security()
        assert "nodeSelector" not in pod(found)["spec"]
        assert "NCCL_NET" not in env(found)


def test_several_machines_never_get_tcp_by_accident() -> None:
    with pytest.raises(
        ChartgenError, match=r"network\.interface: with none, 2 machines would use TCP; use infiniband, or tcp"
    ):
        run("nodes=2")
    assert env(run("nodes=2", "network.interface=tcp"))["NCCL_NET"] == "Socket"


def test_infiniband_by_value() -> None:
    found = run(*INFINIBAND)
    limits = container(found)["resources"]["limits"]
    assert limits == {"nvidia.com/gpu": "8", "nvidia.com/hostdev": "8"}
    assert container(found)["resources"]["requests"] == limits
    assert container(found)["securityContext"] == security("IPC_LOCK")
    assert (env(found)["NCCL_NET"], env(found)["NCCL_NET_PLUGIN"]) == ("IB", "none")
    assert env(found)["NCCL_SOCKET_IFNAME"] == "eth0"
    assert "NCCL_IB_HCA" not in env(found)
    assert not [volume for volume in volumes(found).values() if "hostPath" in volume]


def test_shared_adapters_and_attached_networks() -> None:
    shared = (
        "network.resource=rdma/hca_shared_devices_a",
        "network.resourceCount=1",
        "network.adapters=mlx5_0\\,mlx5_1",
    )
    found = run(*INFINIBAND, *shared, "network.attachments={ib/net0,ib/net1}")
    assert container(found)["resources"]["limits"]["rdma/hca_shared_devices_a"] == "1"
    assert env(found)["NCCL_IB_HCA"] == "mlx5_0,mlx5_1"
    assert pod(found)["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"] == "ib/net0,ib/net1"
    one_machine = run("network.interface=infiniband", *shared, "network.attachments={ib/net0}")
    assert "k8s.v1.cni.cncf.io/networks" not in pod(one_machine)["metadata"]["annotations"]


def test_machines_among_others_are_chosen_by_a_label_of_the_users_own() -> None:
    found = run("machineLabels.nvidia\\.com/gpu\\.product=NVIDIA-H100-80GB-HBM3")
    assert pod(found)["spec"]["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    (machine,) = target(ONPREM).machines.values()
    assert pod(found)["spec"]["nodeSelector"].items() <= machine.labels.items()


def test_data_and_results_are_on_one_share() -> None:
    found = run(files=SITE)
    assert volumes(found)["data"]["persistentVolumeClaim"] == {"claimName": "mlperf"}
    where = {path: mount.get("subPath") for path, mount in mounts(container(found)).items() if mount["name"] == "data"}
    assert where == {"/data": "llama2_70b_lora_data", "/outputs": "results"}


def test_share_without_a_claim() -> None:
    found = run("storage.data.from=nfs://p8000-head-1/mnt/mlperf", "storage.data.readOnly=true")
    assert volumes(found)["data"]["nfs"] == {"server": "p8000-head-1", "path": "/mnt/mlperf", "readOnly": True}


def test_setup_makes_volume_and_claim_and_keeps_them() -> None:
    found = rendered_setup(files=SITE, name=ONPREM)
    volume, claim = one("PersistentVolume", found), one("PersistentVolumeClaim", found)
    assert volume["spec"]["nfs"] == {"server": "p8000-head-1", "path": "/mnt/mlperf"}
    assert volume["spec"]["mountOptions"] == ["hard", "nconnect=8"]
    assert volume["spec"]["claimRef"] == {"namespace": "ml", "name": "mlperf"}
    assert (claim["spec"]["volumeName"], claim["spec"]["storageClassName"]) == (volume["metadata"]["name"], "")
    for item in (volume, claim):
        assert item["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_a_queue_covers_all_that_runs_ask_for() -> None:
    queue = one("ClusterQueue", rendered_setup("queue.name=hall", "nodes=2", files=SITE, name=ONPREM))
    (group,) = queue["spec"]["resourceGroups"]
    asked = container(run(*INFINIBAND, "queue.name=hall"))["resources"]["limits"]
    assert asked.keys() <= set(group["coveredResources"])


def test_torchrun_starts_as_on_any_cluster_of_jobs(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.program("torchrun")
    found = run(files=SITE)
    code, log = machine.finish(found)
    assert code == 0, log
    argv = json.loads((tmp_path / "torchrun.calls").read_text())[0]
    name = one("Job", found)["metadata"]["name"]
    assert argv[1:6] == [
        "--nnodes=1",
        "--nproc-per-node=8",
        "--node-rank=0",
        f"--master-addr={name}-0.{name}",
        "--master-port=6002",
    ]


@pytest.mark.parametrize("adapters", [True, False])
def test_a_pod_without_adapters_stops_before_training(tmp_path: Path, *, adapters: bool) -> None:
    machine = Machine(tmp_path, nccl=verbs("IB", 8))
    machine.program("torchrun")
    devices = tmp_path / "infiniband"
    devices.mkdir()
    if adapters:
        (devices / "uverbs0").touch()
    found = json.loads(json.dumps(run(*INFINIBAND)).replace("/dev/infiniband/", f"{devices}/"))
    code, log = machine.finish(found)
    assert code == (0 if adapters else 78)
    assert ("got no InfiniBand adapter" in log) is not adapters
    assert (tmp_path / "torchrun.calls").exists() is adapters


@pytest.mark.parametrize("sets", [(), INFINIBAND])
def test_script_is_clean_for_bash_and_shellcheck(tmp_path: Path, sets: tuple[str, ...]) -> None:
    script = tmp_path / "start.sh"
    script.write_text(one("ConfigMap", run(*sets))["data"]["start.sh"])
    subprocess.run(["bash", "-n", str(script)], check=True)
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    assert shellcheck, "shellcheck is in requirements/dev.txt"
    done = subprocess.run([shellcheck, str(script)], capture_output=True, text=True, check=False)
    assert done.stdout == ""


@pytest.mark.engines
@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("made", [chart(None, ONPREM), setup_chart(ONPREM)], ids=lambda made: made.name)
def test_strict_lint_of_both_helms(tmp_path: Path, helm: str, made: Chart) -> None:
    made.write(tmp_path / made.name)
    for more in ([], ["-f", str(SITE[0]), "--set", "nodes=2"]):
        command = [str(engines.require(helm)), "lint", "--strict", str(tmp_path / made.name), *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
        assert "[" not in done.stdout, "both have nothing to recommend either"
