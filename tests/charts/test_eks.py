"""The EKS chart: PyTorchJobs of workers, EFA by machine type, FSx for Lustre, and how the machines of a run meet."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nccllogs import efa
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
    setup_chart,
    target,
    volumes,
)
from selection import HELMS

from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.rehearsal import engines
from chartgen.releases.why.explanation import explain_files

EKS = "eks-p5"
SITE = (VALUES / "site.eks-p5.example.yaml",)
EFA = "vpc.amazonaws.com/efa"
ETCD = "rendezvous.backend=etcd"


def run(*sets: str, files: tuple[Path, ...] = SITE, workload: str | None = None) -> Objects:
    return rendered(*sets, files=files, workload=workload, name=EKS)


def worker(found: Objects) -> Objects:
    """The PyTorchJob's workers in the place of a Job, for what all kinds have in common."""
    spec = one("PyTorchJob", found)["spec"]["pytorchReplicaSpecs"]["Worker"]
    return [*(item for item in found if item["kind"] != "PyTorchJob"), {"kind": "Job", "spec": spec}]


def machine(folder: Path) -> Machine:
    """A machine whose image has torchrun and the EFA plugin."""
    made = Machine(folder, nccl=efa(32))
    made.program("torchrun")
    plugin = folder / "image" / "opt" / "efa"
    plugin.mkdir(parents=True)
    (plugin / "libnccl-net.so").touch()
    return made


def called(made: Machine, found: Objects, rank: int = 0) -> tuple[list[str], dict[str, str]]:
    """How the machine of this number calls torchrun: its flags, and its environment."""
    code, log = made.finish(found, rank=rank)
    assert code == 0, log
    argv, variables = json.loads((made.folder / "torchrun.calls").read_text().splitlines()[-1])
    return argv[1 : argv.index("--no-python")], variables


# -- the object


def test_workers_only_and_a_failure_frees_the_machines() -> None:
    spec = one("PyTorchJob", run("nodes=3", "run.deadlineSeconds=4200"))["spec"]
    assert list(spec["pytorchReplicaSpecs"]) == ["Worker"]
    assert spec["runPolicy"] == {"cleanPodPolicy": "Running", "activeDeadlineSeconds": 4200}
    assert spec["nprocPerNode"] == "8"
    assert "elasticPolicy" not in spec
    workers = spec["pytorchReplicaSpecs"]["Worker"]
    assert (workers["replicas"], workers["restartPolicy"]) == (3, "Never")
    assert "restartPolicy" not in workers["template"]["spec"], "the operator warns of it"


def test_pod_is_what_the_operator_wants() -> None:
    found = run("nodes=2")
    name = one("PyTorchJob", found)["metadata"]["name"]
    only = container(worker(found))
    assert only["name"] == "pytorch"
    assert only["ports"] == [{"name": "pytorchjob-port", "containerPort": 6002}]
    rank = next(entry for entry in only["env"] if entry["name"] == "NODE_RANK")
    assert rank["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['training.kubeflow.org/replica-index']"
    assert env(worker(found))["MASTER_ADDR"] == f"{name}-worker-0"
    assert not [entry for entry in only["env"] if entry["name"].startswith("PET_")]
    assert len(f"{name}-worker-9999") <= 63


@pytest.mark.parametrize(
    ("change", "new_run"), [("steps=51", True), ("run.again=x", True), ("queue.priorityClass=y", False)]
)
def test_name_changes_with_what_runs(change: str, *, new_run: bool) -> None:
    names = [
        one("PyTorchJob", run("queue.name=q", "queue.priorityClass=low", *sets))["metadata"]["name"]
        for sets in ((), (change,))
    ]
    assert (names[0] != names[1]) is new_run


def test_changed_etcd_is_a_changed_run() -> None:
    other = "rendezvous.etcdImage=registry.k8s.io/etcd:3.5.15-0"
    names = [one("PyTorchJob", run(ETCD, *sets))["metadata"]["name"] for sets in ((), (other,))]
    assert names[0] != names[1]


def test_a_finished_run_that_is_gone_would_run_again() -> None:
    with pytest.raises(ChartgenError, match=r"run\.ttlSecondsAfterFinished: 60 s .* null"):
        run("run.ttlSecondsAfterFinished=60")


def test_queue_is_asked_for_and_suspend_is_left_to_it() -> None:
    found = run(
        "nodes=2", "queue.name=research", "topology.mode=required", "topology.level=topology.kubernetes.io/zone"
    )
    job = one("PyTorchJob", found)
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "research"
    assert "suspend" not in json.dumps(job)
    annotations = pod(worker(found))["metadata"]["annotations"]
    assert annotations["kueue.x-k8s.io/podset-required-topology"] == "topology.kubernetes.io/zone"
    assert "kueue" not in json.dumps(run("nodes=2"))


def test_job_kind_has_the_same_pod() -> None:
    pytorch, job = pod(worker(run("nodes=2"))), pod(run("nodes=2", workload="job"))
    for field in ("volumes", "tolerations", "nodeSelector"):
        assert len(pytorch["spec"][field]) == len(job["spec"][field])
    assert job["spec"]["containers"][0]["resources"] == pytorch["spec"]["containers"][0]["resources"]


# -- EFA


@pytest.mark.parametrize(
    ("name", "adapters"),
    [
        ("p4d.24xlarge", 4),
        ("p4de.24xlarge", 4),
        ("p5.48xlarge", 32),
        ("p5e.48xlarge", 32),
        ("p5en.48xlarge", 16),
        ("p6-b200.48xlarge", 8),
        ("p6-b300.48xlarge", 16),
    ],
)
def test_adapters_are_those_of_the_machine_type(name: str, adapters: int) -> None:
    found = worker(run("nodes=2", f"machineType={name}"))
    resources = container(found)["resources"]
    assert resources["limits"] == {"nvidia.com/gpu": "8", EFA: str(adapters)}
    assert resources["requests"] == resources["limits"]
    assert pod(found)["spec"]["nodeSelector"] == {"node.kubernetes.io/instance-type": name}
    with pytest.raises(ChartgenError, match=rf"network\.adapters: .* {adapters} EFA adapters of {name}"):
        run(f"machineType={name}", f"network.adapters={adapters + 1}")


def test_every_machine_type_of_the_target_has_adapters() -> None:
    assert len(target(EKS).machines) == 7
    assert all(int(item.capacity[EFA]) >= 4 for item in target(EKS).machines.values())


@pytest.mark.parametrize(
    ("sets", "adapters"),
    [
        (("nodes=1",), None),
        (("nodes=1", "network.adapters=32"), "32"),
        (("nodes=2", "gpusPerNode=4"), "16"),
        (("nodes=2", "gpusPerNode=1", "machineType=p4d.24xlarge"), "1"),
        (("nodes=2", "network.interface=tcp"), None),
    ],
)
def test_adapters_follow_machines_and_gpus(sets: tuple[str, ...], adapters: str | None) -> None:
    assert container(worker(run(*sets)))["resources"]["limits"].get(EFA) == adapters


def test_only_the_settings_that_still_count() -> None:
    variables = env(worker(run("nodes=2")))
    assert variables["FI_EFA_USE_HUGE_PAGE"] == "0"
    assert variables["NCCL_SOCKET_IFNAME"] == "^lo"
    assert variables["NCCL_DEBUG"] == "WARN"
    outdated = {"FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA", "FI_EFA_FORK_SAFE", "FI_EFA_ENABLE_SHM_TRANSFER", "NCCL_PROTO"}
    assert not outdated & variables.keys()
    assert env(worker(run("nodes=2", "network.interface=tcp")))["NCCL_NET"] == "Socket"


def test_never_the_hosts_devices_nor_its_shared_memory() -> None:
    for volume in volumes(worker(run("nodes=2"))).values():
        assert volume.get("hostPath", {}).get("path", "/mnt/k8s-disks/0") == "/mnt/k8s-disks/0"
    assert volumes(worker(run()))["shared-memory"]["emptyDir"]["medium"] == "Memory"


def test_huge_pages_only_when_asked_for_and_beside_memory() -> None:
    with pytest.raises(ChartgenError, match=r"network\.hugePages: .*launchers\.megatron-lm\.resources\.requests"):
        run("nodes=2", "network.hugePages=5120Mi")
    found = worker(run("nodes=2", "network.hugePages=5120Mi", "launchers.megatron-lm.resources.requests.memory=500Gi"))
    limits, requests = (container(found)["resources"][field] for field in ("limits", "requests"))
    assert limits["hugepages-2Mi"] == requests["hugepages-2Mi"] == "5120Mi"
    assert "FI_EFA_USE_HUGE_PAGE" not in env(found)


def test_an_ultraserver_has_a_compute_domain_beside_efa() -> None:
    """awslabs/awsome-distributed-ai @ 95b939c, micro-benchmarks/nccl-tests/kubernetes/nccl-tests-gb200.yaml."""
    for nodes, key in ((2, "nvidia.com/gpu.clique"), (19, "topology.kubernetes.io/zone")):
        found = rendered(f"nodes={nodes}", files=(), name="eks-p6e-gb200")
        assert one("ComputeDomain", found)["spec"]["numNodes"] == nodes
        workers = worker(found)
        assert container(workers)["resources"]["limits"] == {"nvidia.com/gpu": "4", EFA: "4"}
        assert container(workers)["resources"]["claims"] == [{"name": "compute-domain-channel"}]
        affinity = pod(workers)["spec"]["affinity"]["podAffinity"]
        assert [each["topologyKey"] for each in affinity["requiredDuringSchedulingIgnoredDuringExecution"]] == [key]


def test_machines_of_a_run_share_a_zone() -> None:
    found = run("nodes=2")
    name = one("PyTorchJob", found)["metadata"]["name"]
    (term,) = pod(worker(found))["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term == {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"run": name}}}
    assert pod(worker(found))["metadata"]["labels"]["run"] == name
    assert "podAffinity" not in pod(worker(run("nodes=1")))["spec"]["affinity"]


@pytest.mark.parametrize(("library", "told"), [("libnccl-net.so", None), ("libnccl-net-ofi.so", "ofi")])
def test_the_efa_plugin_comes_first(tmp_path: Path, library: str, told: str | None) -> None:
    made = machine(tmp_path)
    plugin = tmp_path / "image/opt/efa"
    (plugin / "libnccl-net.so").rename(plugin / library)
    made.variables["LD_LIBRARY_PATH"] = "/usr/lib/other"
    _, variables = called(made, run("nodes=2", "network.plugin=/opt/efa"))
    assert variables["LD_LIBRARY_PATH"].split(":") == [
        str(plugin),
        str(tmp_path / "image/opt/amazon/efa/lib"),
        "/usr/lib/other",
    ]
    assert variables.get("NCCL_NET_PLUGIN") == told


@pytest.mark.parametrize(
    ("library", "sets", "told"),
    [
        ("libnccl-net.so", (), "/libnccl-net.so"),
        ("libnccl-net-ofi.so", (), "ofi"),
        ("libnccl-net.so", ("env.NCCL_NET_PLUGIN=own",), "own"),
    ],
)
def test_another_plugin_that_the_image_presets_is_not_used(
    tmp_path: Path, library: str, sets: tuple[str, ...], told: str
) -> None:
    # as NVIDIA's images do from NeMo 26.08 on
    made = machine(tmp_path)
    plugin = tmp_path / "image/opt/efa"
    (plugin / "libnccl-net.so").rename(plugin / library)
    if not sets:
        made.variables["NCCL_NET_PLUGIN"] = "spcx"
    _, variables = called(made, run("nodes=2", "network.plugin=/opt/efa", *sets))
    assert variables["NCCL_NET_PLUGIN"] == (f"{plugin}{told}" if told.startswith("/") else told)


def test_tcp_on_purpose_loads_no_plugin() -> None:
    assert env(worker(run("nodes=2", "network.interface=tcp")))["NCCL_NET_PLUGIN"] == "none"


def test_an_image_without_the_plugin_stops_before_training(tmp_path: Path) -> None:
    made = machine(tmp_path)
    code, log = made.finish(run("nodes=2", "network.plugin=/opt/elsewhere"))
    assert code == 78
    assert "no EFA plugin for NCCL" in log
    assert not (tmp_path / "torchrun.calls").exists()
    (box,) = tmp_path.rglob("blackbox/machine-0.log")
    assert explain_files([box]).cause == "vendor-software"


def test_a_machine_whose_network_is_not_as_promised_leaves_a_black_box(tmp_path: Path) -> None:
    made = machine(tmp_path)
    made.nccl = efa(1)
    assert made.finish(run("nodes=2", "network.plugin=/opt/efa"))[0] == 78
    (box,) = tmp_path.rglob("blackbox/machine-0.log")
    assert explain_files([box]).cause == "network-contract"
    assert "machine 0 ended with exit code 78" in box.read_text()


# -- how machines meet


def test_machines_meet_at_the_first_one(tmp_path: Path) -> None:
    found = run("nodes=12", "network.plugin=/opt/efa")
    name = one("PyTorchJob", found)["metadata"]["name"]
    made = machine(tmp_path)
    flags = {rank: called(made, found, rank)[0] for rank in (0, 2, 11)}
    first = f"{name}-worker-0"
    assert flags[0] == [
        "--nnodes=12",
        "--nproc-per-node=8",
        "--max-restarts=0",
        f"--local-addr={first}",
        f"--rdzv-id={name}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={first}:6002",
        "--rdzv-conf=is_host=1,read_timeout=1800,join_timeout=1800",
    ]
    assert {flags[rank][-1] for rank in (2, 11)} == {
        "--rdzv-conf=is_host=0,read_timeout=1800,join_timeout=1800",
    }
    # torchrun numbers the machines in the order of these texts
    addresses = [flags[rank][3].removeprefix("--local-addr=") for rank in (0, 2, 11)]
    assert addresses == sorted(addresses)


def test_each_attempt_has_a_store_of_its_own(tmp_path: Path) -> None:
    made = machine(tmp_path)
    flags, variables = called(made, run("nodes=2", "network.plugin=/opt/efa", "run.maxRestarts=3"))
    assert "--max-restarts=3" in flags
    assert variables["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"
    assert "TORCH_DISABLE_SHARE_RDZV_TCP_STORE" not in called(made, run("nodes=2", "network.plugin=/opt/efa"))[1]


def test_exit_code_is_the_trainers(tmp_path: Path) -> None:
    made = machine(tmp_path)
    made.program("torchrun", "sys.exit(37)")
    assert made.finish(run("nodes=2", "network.plugin=/opt/efa"))[0] == 37


def test_etcd_only_by_value_and_of_the_runs_own() -> None:
    assert {item["kind"] for item in run("nodes=2")} == {"ConfigMap", "NetworkPolicy", "PyTorchJob"}
    found = run("nodes=2", ETCD)
    name = f"{one('PyTorchJob', found)['metadata']['name']}-etcd"
    deployment, service = one("Deployment", found), one("Service", found)
    assert deployment["metadata"]["name"] == service["metadata"]["name"] == name
    template = deployment["spec"]["template"]
    assert (
        service["spec"]["selector"] == template["metadata"]["labels"] == deployment["spec"]["selector"]["matchLabels"]
    )
    assert template["metadata"]["labels"]["app.kubernetes.io/instance"] == name, "no pod of the training"
    command = template["spec"]["containers"][0]["command"]
    assert "--enable-v2" in command
    assert f"--advertise-client-urls=http://{name}:2379" in command


def test_etcd_must_speak_the_old_api() -> None:
    with pytest.raises(ChartgenError, match=r"etcd 3\.4 or 3\.5"):
        run(ETCD, "rendezvous.etcdImage=registry.k8s.io/etcd:3.6.1-0")


def test_torchrun_waits_for_etcd(tmp_path: Path) -> None:
    found = run("nodes=2", "network.plugin=/opt/efa", ETCD)
    name = f"{one('PyTorchJob', found)['metadata']['name']}-etcd"
    with socket.create_server(("127.0.0.1", 0)) as server:
        local = json.loads(
            json.dumps(found).replace(f"/dev/tcp/{name}/2379", f"/dev/tcp/127.0.0.1/{server.getsockname()[1]}")
        )
        flags, _ = called(machine(tmp_path), local)
    assert f"--rdzv-endpoint={name}:2379" in flags
    assert "--rdzv-backend=etcd-v2" in flags


def test_an_etcd_that_never_answers_is_told(tmp_path: Path) -> None:
    found = run("nodes=2", "network.plugin=/opt/efa", ETCD, "rendezvous.timeoutSeconds=1")
    code, log = machine(tmp_path).finish(found)
    assert code == 1
    assert "no etcd at" in log
    assert not (tmp_path / "torchrun.calls").exists()


PROFILE = ("profile.enabled=true", "profile.startStep=5", "profile.endStep=7")


@pytest.mark.parametrize("sets", [(), ("nodes=2",), ("nodes=2", ETCD, "run.maxRestarts=1", *PROFILE)])
def test_script_is_clean_for_bash_and_shellcheck(tmp_path: Path, sets: tuple[str, ...]) -> None:
    script = tmp_path / "start.sh"
    script.write_text(one("ConfigMap", run(*sets))["data"]["start.sh"])
    subprocess.run(["bash", "-n", str(script)], check=True)
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    assert shellcheck, "shellcheck is in requirements/dev.txt"
    done = subprocess.run([shellcheck, str(script)], capture_output=True, text=True, check=False)
    assert done.stdout == ""


# -- storage


def test_roles_share_the_claim_and_scratch_is_the_machines_own() -> None:
    found = worker(run("nodes=2"))
    assert volumes(found)["data"]["persistentVolumeClaim"] == {"claimName": "fsx-claim"}
    outputs = mounts(container(found))["/outputs"]
    assert (outputs["name"], outputs["subPath"]) == ("data", "outputs")
    assert volumes(found)["scratch"]["hostPath"] == {"path": "/mnt/k8s-disks/0", "type": "Directory"}


def test_a_file_system_that_exists() -> None:
    found = rendered_setup(files=SITE, name=EKS)
    volume, claim = one("PersistentVolume", found), one("PersistentVolumeClaim", found)
    assert volume["spec"]["csi"] == {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": "fs-0123456789abcdef0",
        "volumeAttributes": {"dnsname": "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com", "mountname": "abcdefgh"},
    }
    assert volume["spec"]["mountOptions"] == ["flock"]
    assert volume["spec"]["claimRef"] == {"namespace": "ml", "name": "fsx-claim"}
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert volume["spec"]["capacity"] == claim["spec"]["resources"]["requests"] == {"storage": "1200Gi"}
    assert (claim["spec"]["volumeName"], claim["spec"]["storageClassName"]) == (volume["metadata"]["name"], "")
    for item in (volume, claim):
        assert item["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_a_new_file_system() -> None:
    fsx = {"subnet": "subnet-0a", "securityGroups": ["sg-0b", "sg-0c"], "perUnitStorageThroughput": 500}
    claims = f"setup.claims={json.dumps({'new': {'size': '2400Gi', 'fsx': fsx}})}"
    found = rendered_setup(files=(), json=(claims,), name=EKS)
    made, claim = one("StorageClass", found), one("PersistentVolumeClaim", found)
    assert made["provisioner"] == "fsx.csi.aws.com"
    assert made["parameters"] == {
        "subnetId": "subnet-0a",
        "securityGroupIds": "sg-0b,sg-0c",
        "deploymentType": "PERSISTENT_2",
        "perUnitStorageThroughput": "500",
    }
    assert (made["reclaimPolicy"], made["mountOptions"]) == ("Retain", ["flock"])
    assert claim["spec"]["storageClassName"] == made["metadata"]["name"]
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


@pytest.mark.parametrize(
    "fsx",
    [
        {},
        {"fileSystem": "fs-0a"},
        {"subnet": "subnet-0a"},
        {"deploymentType": "SCRATCH_2"},
        {
            "subnet": "subnet-0a",
            "securityGroups": ["sg-0b"],
            "fileSystem": "fs-0a",
            "dnsName": "fs-0a.fsx.x.amazonaws.com",
            "mountName": "fsx",
        },
    ],
)
def test_half_a_file_system_is_refused(fsx: dict[str, Any]) -> None:
    with pytest.raises(ChartgenError, match=r"setup\.claims\.new\.fsx"):
        rendered_setup(files=(), json=(f"setup.claims={json.dumps({'new': {'fsx': fsx}})}",), name=EKS)


# -- as a whole


@pytest.mark.engines
@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("made", [chart(None, EKS), chart("job", EKS), setup_chart(EKS)], ids=lambda made: made.name)
def test_strict_lint_of_both_helms(tmp_path: Path, helm: str, made: Chart) -> None:
    made.write(tmp_path / made.name)
    for more in ([], ["-f", str(SITE[0]), "--set", "nodes=2"]):
        command = [str(engines.require(helm)), "lint", "--strict", str(tmp_path / made.name), *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
        assert "[" not in done.stdout, "both have nothing to recommend either"
