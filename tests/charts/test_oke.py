"""The OKE chart holds what the vendor and the guide ask for, as meaning: read from what Helm renders."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from rendered import VALUES, Objects, one, rendered, rendered_setup, security

from chartgen.errors import ChartgenError

SITE = VALUES / "site.oke-h100.example.yaml"
oke = partial(rendered, name="oke-h100", files=())
# Numbers of mlx5_N as oracle-quickstart/oci-hpc-oke @ 61d210a states them for each shape, and its virtual functions.
ADAPTERS = {
    "BM.GPU.H100.8": ("=", "0 1 3 4 5 6 7 8 9 10 12 13 14 15 16 17", 16),
    "BM.GPU.H200.8": ("=", "0 3 4 5 6 9 10 11", 8),
    "BM.GPU.B200.8": ("=", "0 3 4 5 6 9 10 11", 8),
    "BM.GPU.B300.8": ("=", "0 1 7 8 9 10 11 12 13 14 16 17 18 19 20 21", 16),
    "BM.GPU.A100-v2.8": ("=", "1 2 3 4 5 6 7 8 14 15 16 17 9 10 11 12", 16),
    "BM.GPU.B4.8": ("=", "1 2 3 4 5 6 7 8 14 15 16 17 9 10 11 12", 16),
    "BM.GPU4.8": ("=", "0 2 6 8 10 12 14 16 1 3 7 9 11 13 15 17", 16),
    "BM.GPU.RTXPRO.8": ("=", "0 1 2 3 6 7 8 9", 0),
    "BM.GPU.GB200.4": ("", "0 1 3 4", 0),
    "BM.GPU.GB200-v2.4": ("", "0 1 3 4", 0),
    "BM.GPU.GB200-v3.4": ("=", "0 1 2 3 5 6 7 8", 0),
    "BM.GPU.GB300.4": ("=", "0 1 2 3 5 6 7 8", 0),
}
SETTINGS = {
    "BM.GPU.H100.8": {"CUMEM_ENABLE": "0", "SOCKET_IFNAME": "eth0", "IGNORE_CPU_AFFINITY": "1", "IB_TIMEOUT": "22"},
    "BM.GPU4.8": {"IB_QPS_PER_CONNECTION": "4", "IB_GID_INDEX": "3", "IB_TC": "41", "IB_SL": "0"},
    "BM.GPU.RTXPRO.8": {"ALGO": "Tree", "MIN_NCHANNELS": "8", "NET_PLUGIN": "none", "IB_QPS_PER_CONNECTION": "1"},
    "BM.GPU.GB200.4": {"MNNVL_ENABLE": "1", "CUMEM_ENABLE": "1", "NVLS_ENABLE": "1", "NET_PLUGIN": "sys"},
    "BM.GPU.GB200-v3.4": {"NET_GDR_C2C": "1", "NET_PLUGIN": "none", "IB_QPS_PER_CONNECTION": "1"},
    "BM.GPU.GB300.4": {"BUFFSIZE": "16777216", "DMABUF_ENABLE": "1", "NET_GDR_C2C": "1", "IB_QPS_PER_CONNECTION": "4"},
}
# NCCL settings of the Volcano-era guide that the vendor has dropped since.
DROPPED = ("CROSS_NIC", "SOCKET_NTHREADS")


def spec(found: Objects) -> dict[str, Any]:
    return dict(one("Job", found)["spec"])


def task(found: Objects, name: str) -> dict[str, Any]:
    """One task of the Job: replicas, policies, and its pod as `template`."""
    (only,) = (item for item in spec(found)["tasks"] if item["name"] == name)
    return dict(only)


def pod(found: Objects, name: str = "mpiworker") -> dict[str, Any]:
    return dict(task(found, name)["template"]["spec"])


def container(found: Objects, name: str = "mpiworker") -> dict[str, Any]:
    (only,) = pod(found, name)["containers"]
    return dict(only)


def env(found: Objects, name: str = "mpiworker") -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in container(found, name)["env"] if "value" in entry}


def nccl_conf(found: Objects) -> dict[str, str]:
    """NCCL's file as NCCL reads it: a line is cut at its first =."""
    (data,) = (item["data"] for item in found if item["kind"] == "ConfigMap" and "nccl.conf" in item["data"])
    return dict(line.split("=", 1) for line in data["nccl.conf"].splitlines())


def test_gang_counts_the_master_and_every_worker() -> None:
    found = oke("nodes=16")
    assert spec(found)["minAvailable"] == 17
    for name, replicas in (("mpimaster", 1), ("mpiworker", 16)):
        assert (task(found, name)["replicas"], task(found, name)["minAvailable"]) == (replicas, replicas)
    assert [item["name"] for item in spec(found)["tasks"]][-1] == "mpiworker"


def test_the_end_of_the_master_ends_the_run_and_a_failed_pod_fails_it() -> None:
    found = oke()
    assert task(found, "mpimaster")["policies"] == [{"event": "TaskCompleted", "action": "CompleteJob"}]
    final = [{"exitCode": code, "action": "TerminateJob"} for code in (17, 78, 93)]
    assert spec(found)["policies"] == [*final, {"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}]
    # Volcano counts the first start too.
    assert spec(found)["maxRetry"] == 1
    assert spec(oke("run.maxRestarts=3"))["maxRetry"] == 4
    assert {pod(found, name)["restartPolicy"] for name in ("mpimaster", "mpiworker")} == {"Never"}


def test_nothing_is_left_to_the_defaults_of_volcanos_webhook() -> None:
    found = oke()
    assert {"schedulerName", "queue", "maxRetry", "minAvailable"} <= set(spec(found))
    for item in spec(found)["tasks"]:
        assert {"name", "replicas", "minAvailable", "maxRetry"} <= set(item)
        assert item["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert "ttlSecondsAfterFinished" not in spec(found)


def test_ssh_has_a_port_of_its_own_and_the_master_takes_no_port_of_the_machine() -> None:
    found = oke("mpi.sshPort=2345")
    assert env(found, "mpimaster")["MPI_SSH_PORT"] == "2345"
    (script,) = (item["data"]["start.sh"] for item in found if "start.sh" in item.get("data", {}))
    assert " -p 2345 " in script
    assert "ports" not in container(found, "mpimaster")
    assert spec(found)["plugins"] == {
        "ssh": [],
        "svc": ["--publish-not-ready-addresses=true", "--disable-network-policy=true"],
    }
    for port in (22, 6002):
        with pytest.raises(ChartgenError, match=rf"mpi\.sshPort: {port} is taken"):
            oke(f"mpi.sshPort={port}")


def test_machines_with_gpus_are_enough_for_the_master_too() -> None:
    found = oke()
    for field in ("nodeSelector", "tolerations", "hostNetwork", "affinity"):
        assert pod(found, "mpimaster")[field] == pod(found)[field]
    assert pod(found)["nodeSelector"] == {"node.kubernetes.io/instance-type": "BM.GPU.H100.8"}
    assert pod(found)["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    master = container(found, "mpimaster")
    assert master["image"] == container(found)["image"]
    assert "limits" not in master["resources"]
    assert master["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@pytest.mark.parametrize("shape", ADAPTERS)
def test_nccl_uses_the_adapters_of_the_shape(shape: str) -> None:
    exact, numbers, functions = ADAPTERS[shape]
    found = oke(f"machineType={shape}", "nodes=2")
    settings = nccl_conf(found)
    assert settings["NCCL_IB_HCA"] == exact + ",".join(f"mlx5_{number}" for number in numbers.split())
    assert settings["NCCL_DEBUG"] == "WARN"
    wanted = {f"NCCL_{name}": value for name, value in SETTINGS.get(shape, {}).items()}
    assert wanted.items() <= settings.items()
    # where an image presets another plugin: a variable wins over the file
    assert env(found)["NCCL_NET_PLUGIN"] == settings.get("NCCL_NET_PLUGIN", "none")
    assert not [name for name in DROPPED if f"NCCL_{name}" in settings]
    gpus = int(shape.rpartition(".")[2])
    assert container(found)["resources"]["limits"] == {"nvidia.com/gpu": str(gpus)}
    assert pod(found)["nodeSelector"] == {"node.kubernetes.io/instance-type": shape}
    if functions:
        limits = container(oke(f"machineType={shape}", "network.mode=sriov"))["resources"]["limits"]
        assert limits["nvidia.com/rdma-vf"] == str(functions)
    else:
        with pytest.raises(ChartgenError, match=r"network\.mode: .* has no virtual functions; use host"):
            oke(f"machineType={shape}", "network.mode=sriov")


def test_h100_settings_are_these_and_no_more() -> None:
    names = {name.removeprefix("NCCL_") for name in nccl_conf(oke())}
    shared = {"DEBUG", "IB_HCA", "IB_SPLIT_DATA_ON_QPS", "IB_GID_INDEX", "IB_TC", "IB_SL", "IB_TIMEOUT"}
    assert names == {*shared, "CUMEM_ENABLE", "SOCKET_IFNAME", "IGNORE_CPU_AFFINITY"}


@pytest.mark.parametrize(
    ("shape", "absent"),
    [
        ("BM.GPU.H100.8", set()),
        ("BM.GPU4.8", {"RX_QUEUE_LEN", "IB_RX_QUEUE_LEN"}),
        ("BM.GPU.GB300.4", {"UCX_TLS"}),
        ("BM.GPU.GB200-v3.4", {"HCOLL_ENABLE_MCAST_ALL", "RX_QUEUE_LEN", "IB_RX_QUEUE_LEN"}),
    ],
)
def test_mpi_stays_off_the_adapters(shape: str, absent: set[str]) -> None:
    everything = {
        "OMPI_MCA_coll": "^hcoll",
        "HCOLL_ENABLE_MCAST_ALL": "0",
        "UCX_TLS": "tcp",
        "UCX_NET_DEVICES": "eth0",
        "RX_QUEUE_LEN": "8192",
        "IB_RX_QUEUE_LEN": "8192",
    }
    variables = env(oke(f"machineType={shape}"))
    assert {name: value for name, value in variables.items() if name in everything} == {
        name: value for name, value in everything.items() if name not in absent
    }
    assert (variables["GLOO_SOCKET_IFNAME"], variables["TP_SOCKET_IFNAME"]) == ("eth0", "eth0")


def test_binding_follows_the_shape_and_the_user_wins() -> None:
    assert env(oke(), "mpimaster")["MPI_BIND_TO"] == "numa"
    assert env(oke("machineType=BM.GPU.GB200.4"), "mpimaster")["MPI_BIND_TO"] == "none"
    assert env(oke("machineType=BM.GPU.GB200.4", "mpi.bindTo=core"), "mpimaster")["MPI_BIND_TO"] == "core"


def test_settings_are_a_file_in_every_worker_and_part_of_the_run() -> None:
    found = oke()
    (mount,) = (item for item in container(found)["volumeMounts"] if item["mountPath"] == "/etc/nccl.conf")
    (volume,) = (item for item in pod(found)["volumes"] if item["name"] == mount["name"])
    (config,) = (item for item in found if "nccl.conf" in item.get("data", {}))
    assert (mount["subPath"], volume["configMap"]["name"]) == ("nccl.conf", config["metadata"]["name"])
    assert config["immutable"] is True
    assert config["metadata"]["name"].startswith(one("Job", found)["metadata"]["name"])
    assert "namespace" not in config["metadata"]


def test_host_network_and_devices() -> None:
    found = oke()
    assert (pod(found)["hostNetwork"], pod(found)["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    paths = [volume["hostPath"]["path"] for volume in pod(found)["volumes"] if "hostPath" in volume]
    assert paths == ["/dev/infiniband"]
    assert container(found)["securityContext"] == {"privileged": True, "capabilities": {"add": ["IPC_LOCK"]}}


@pytest.mark.parametrize(("gpus", "functions"), [(8, 16), (4, 8)])
def test_virtual_functions_instead_of_the_machines_network(gpus: int, functions: int) -> None:
    found = oke("network.mode=sriov", f"gpusPerNode={gpus}", "network.virtualFunctions=fabric/vf")
    for name in ("mpimaster", "mpiworker"):
        assert "hostNetwork" not in pod(found, name)
        assert not [volume for volume in pod(found, name)["volumes"] if "hostPath" in volume]
    # the device plugin hands out the devices of the functions; RDMA needs locked memory and nothing else
    # its ssh server is in an empty root besides
    assert container(found)["securityContext"] == security("IPC_LOCK", "SYS_CHROOT")
    assert "/dev/infiniband" not in [mount["mountPath"] for mount in container(found)["volumeMounts"]]
    annotations = task(found, "mpiworker")["template"]["metadata"]["annotations"]
    assert annotations["k8s.v1.cni.cncf.io/networks"].split(",") == ["fabric/vf"] * functions
    assert container(found)["resources"]["limits"]["nvidia.com/rdma-vf"] == str(functions)
    assert nccl_conf(found)["NCCL_IB_HCA"] == "mlx5"


def test_machines_with_nvlink_between_them_share_a_compute_domain() -> None:
    found = oke("machineType=BM.GPU.GB300.4", "nodes=18")
    domain = one("ComputeDomain", found)
    (claim,) = pod(found)["resourceClaims"]
    assert claim["resourceClaimTemplateName"] == domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
    assert container(found)["resources"]["claims"] == [{"name": claim["name"]}]
    assert domain["spec"]["numNodes"] == 18
    assert "ComputeDomain" not in {item["kind"] for item in oke()}


def test_machines_times_gpus_is_the_world() -> None:
    found = oke("nodes=3", "gpusPerNode=4")
    for name in ("mpimaster", "mpiworker"):
        assert (env(found, name)["NNODES"], env(found, name)["GPUS_PER_NODE"]) == ("3", "4")
    (rank,) = (entry for entry in container(found)["env"] if entry["name"] == "NODE_RANK")
    assert rank["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['volcano.sh/task-index']"


def test_the_deadline_is_the_masters() -> None:
    found = oke("run.deadlineSeconds=3600")
    assert pod(found, "mpimaster")["activeDeadlineSeconds"] == 3600
    assert "activeDeadlineSeconds" not in pod(found)


@pytest.mark.parametrize(
    "change",
    [
        "steps=11",
        "mpi.sshPort=2223",
        "mpi.waitSeconds=5",
        "mpi.sortHosts=false",
        "network.interface=ens300",
        "machineType=BM.GPU.H200.8",
        "queue.name=other",
        "run.maxRestarts=1",
        "run.again=once-more",
    ],
)
def test_what_changes_the_run_is_another_run_with_files_of_its_own(change: str) -> None:
    first, second = oke(), oke(change)
    names = [{item["metadata"]["name"] for item in found} for found in (first, second)]
    assert names[0].isdisjoint(names[1])
    assert oke() == first


def test_queue_and_priority() -> None:
    assert spec(oke())["queue"] == "default"
    found = oke("queue.name=training", "queue.priorityClass=high")
    assert (spec(found)["queue"], spec(found)["priorityClassName"]) == ("training", "high")
    assert "kueue" not in json.dumps(found)


@pytest.mark.parametrize("unknown", ["queue.flexStart=true", "topology.mode=required"])
def test_what_only_kueue_has_is_refused(unknown: str) -> None:
    with pytest.raises(ChartgenError, match=unknown.partition("=")[0].split(".")[-1]):
        oke(unknown)


def test_what_volcano_cannot_do_is_refused() -> None:
    with pytest.raises(ChartgenError, match=r"run\.ttlSecondsAfterFinished: 60 s .* null"):
        oke("run.ttlSecondsAfterFinished=60")


@pytest.mark.parametrize(
    ("preset", "nodes"), [("llama2-7b", 2), ("llama2-70b", 16), ("llama3-8b", 4), ("llama3-70b", 8)]
)
def test_presets_of_the_guide_fit_their_machines(preset: str, nodes: int) -> None:
    found = oke(files=(VALUES / f"{preset}.yaml", VALUES / "oke-h100" / f"{preset}.yaml", SITE))
    assert task(found, "mpiworker")["replicas"] == nodes
    assert container(found)["image"] == "nvcr.io/nvidia/nemo:24.09"
    assert next(entry for entry in container(found)["env"] if entry["name"] == "HF_TOKEN")["valueFrom"]
    claims = [volume["persistentVolumeClaim"] for volume in pod(found)["volumes"] if "persistentVolumeClaim" in volume]
    assert claims == [{"claimName": "training"}]
    assert "HF_TOKEN" not in json.dumps(task(found, "mpimaster"))


def test_setup_makes_the_volume_its_claim_and_the_queue() -> None:
    found = rendered_setup(name="oke-h100", files=(SITE,))
    volume, claim, queue = (one(kind, found) for kind in ("PersistentVolume", "PersistentVolumeClaim", "Queue"))
    assert volume["spec"]["nfs"] == {"server": "fs1.fss.zone", "path": "/data"}
    assert volume["spec"]["mountOptions"] == ["nconnect=16"]
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"] != "fss-pv"
    assert claim["metadata"]["name"] == "training"
    assert queue["spec"]["capability"]["nvidia.com/gpu"] == str(16 * 8)
    assert queue["spec"]["capability"]["memory"] == f"{16 * 2000}Gi"


@pytest.mark.parametrize("name", ["", "default"])
def test_setup_leaves_volcanos_own_queue_alone(name: str) -> None:
    assert rendered_setup(f"queue.name={name}", name="oke-h100", files=()) == []
