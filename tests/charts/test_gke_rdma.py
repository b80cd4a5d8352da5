"""The charts of A3 Ultra, A4 and A4X: gIB from the machine's folders, adapters by annotation or by claims."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from image_recorder import Image
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
    target,
    volumes,
)

from chartgen.errors import ChartgenError

ULTRA, A4, A4X = "gke-a3ultra", "gke-a4", "gke-a4x"


MAX = ("machineType=a4x-maxgpu-4g-metal", "launchers.megatron-lm.image=example.com/nemo-gib:26.06")


def run(*sets: str, name: str = ULTRA) -> Objects:
    return rendered("nodes=2", *sets, files=(), name=name)


def interfaces(found: Objects) -> dict[str, str]:
    listed = json.loads(pod(found)["metadata"]["annotations"]["networking.gke.io/interfaces"])
    return {each["interfaceName"]: each["network"] for each in listed}


# GoogleCloudPlatform/container-engine-accelerators @ 992db81, gpudirect-rdma: nccl-test-autopilot.yaml, nccl-test.yaml
RDMA = {f"eth{number + 2}": f"rdma-{number}" for number in range(8)}


@pytest.mark.parametrize("name", [ULTRA, A4])
def test_every_adapter_has_its_network(name: str) -> None:
    found = run(name=name)
    assert interfaces(found) == {"eth0": "default", "eth1": "gvnic-1", **RDMA}
    assert interfaces(run("network.gvnic=", name=name)) == {"eth0": "default", **RDMA}
    assert pod(found)["metadata"]["annotations"]["networking.gke.io/default-interface"] == "eth0"
    assert "resourceClaims" not in pod(found)["spec"]


def test_the_plugin_comes_from_the_machine_and_the_pod_has_no_privilege() -> None:
    found = run()
    for path, name, folder in (("/usr/local/gib", "gib", "gib"), ("/usr/local/nvidia", "nvidia-libraries", "nvidia")):
        assert mounts(container(found))[path] == {"name": name, "mountPath": path, "readOnly": True}
        assert volumes(found)[name]["hostPath"]["path"] == f"/home/kubernetes/bin/{folder}"
    assert container(found)["securityContext"] == security()
    assert not pod(found)["spec"].get("initContainers")


def test_the_scripts_settings_are_read_and_not_written_down() -> None:
    found = run()
    assert {name: value for name, value in env(found).items() if name.startswith("NCCL_")} == {
        "NCCL_DEBUG": "WARN",
        "NCCL_NET": "gIB",
        "NCCL_NET_PLUGIN": "/usr/local/gib/lib64/libnccl-net.so",
        "NCCL_SOCKET_IFNAME": "eth0",
    }
    (script,) = (item["data"]["start.sh"] for item in found if "start.sh" in item.get("data", {}))
    assert "source_profile /usr/local/gib/scripts/set_nccl_env.sh" in script


def test_cudas_compat_folder_is_before_the_machines_driver(tmp_path: Path) -> None:
    """AI-Hypercomputer/gpu-recipes @ 2e1fd5e: 67 launchers; our start adds to the image's own folders."""
    image = Image(tmp_path, environment={"LD_LIBRARY_PATH": "/image"})
    image.program("torchrun")
    command, variables = image.command(run("nodes=1"))
    script = tmp_path / "start.sh"
    script.write_text(script.read_text().replace("/usr/local/gib/scripts/set_nccl_env.sh", "/dev/null"))
    subprocess.run(command, env=variables, check=True, capture_output=True)
    folders = image.record()["env"]["LD_LIBRARY_PATH"].split(":")
    assert folders == ["/usr/local/cuda/compat/lib", "/usr/local/gib/lib64", "/usr/local/nvidia/lib64", "/image"]


@pytest.mark.skipif(not shutil.which("taskset"), reason="no taskset")
@pytest.mark.parametrize(("name", "first"), [(ULTRA, 4), (A4X, 2)])
def test_half_of_the_ranks_run_at_each_numa_node(tmp_path: Path, name: str, first: int) -> None:
    """AI-Hypercomputer/gpu-recipes @ 2e1fd5e: LOCAL_RANK/4 with 8 GPUs, LOCAL_RANK/2 with 4."""
    processes = tmp_path / "processes"
    processes.mkdir()
    last = max(os.sched_getaffinity(0))
    # of the machine of the test: the second node has its last CPU alone, the first one none
    (tmp_path / "node1").mkdir()
    (tmp_path / "node1/cpulist").write_text(f"{last}\n")
    script = one("ConfigMap", run("run.hangMinutes=0", name=name))["data"]["rank.sh"].replace(
        "/sys/devices/system/node", str(tmp_path)
    )
    seen = []
    for local in range(2 * first):
        variables = {**os.environ, "LOCAL_RANK": str(local), "CHARTGEN_PROCESSES": str(processes)}
        argv = ["bash", "-c", script, "rank", "-c", "import os; print(*os.sched_getaffinity(0))"]
        done = subprocess.run(argv, env=variables, check=True, capture_output=True, text=True)
        seen.append((done.stdout.split() == [str(last)], "NUMA" in done.stderr))
    assert seen == [(False, True), *[(False, False)] * (first - 1), *[(True, False)] * first], "one line for a machine"


def test_claims_in_place_of_networks() -> None:
    """GoogleCloudPlatform/container-engine-accelerators @ 992db81, gpudirect-rdma/nccl-test-managed-rdma.yaml."""
    found = run("network.mode=claims")
    template = one("ResourceClaimTemplate", found)
    assert template["apiVersion"] == "resource.k8s.io/v1"
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"] == {
        "deviceClassName": "mrdma.google.com",
        "allocationMode": "ExactCount",
        "count": 8,
    }
    claim = {"name": "rdma", "resourceClaimTemplateName": template["metadata"]["name"]}
    assert pod(found)["spec"]["resourceClaims"] == [claim]
    assert container(found)["resources"]["claims"] == [{"name": "rdma"}]
    assert not [key for key in pod(found)["metadata"]["annotations"] if key.startswith("networking.gke.io")]
    prepared = ("launcher=download", "data.source=https://d.example/a", "network.mode=claims")
    assert "ResourceClaimTemplate" not in {item["kind"] for item in rendered(*prepared, files=(), name=ULTRA)}


def test_a_changed_count_is_a_changed_run() -> None:
    names = [
        one("JobSet", run("network.mode=claims", f"network.deviceCount={count}"))["metadata"]["name"]
        for count in (4, 8)
    ]
    assert len(set(names)) == 2


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (("network.subnetworks={a,b}",), r"network\.subnetworks: 2 networks for the 8 RDMA adapters"),
        (("network.mode=claims", "network.deviceCount=9"), r"network\.deviceCount: 9 is more than the 8 RDMA adapters"),
    ],
)
def test_what_a_machine_does_not_have_is_refused(sets: tuple[str, ...], message: str) -> None:
    with pytest.raises(ChartgenError, match=message):
        run(*sets)


def test_the_floors_of_both_machines() -> None:
    for name, busbw in ((ULTRA, "296.0"), (A4, "338.1")):
        argv = container(run("launcher=nccl-test", name=name))["args"]
        at = argv.index("--floor")
        assert argv[at + 1 : at + 4] == ["all_gather", busbw, "8Gi"]


def test_overlays_are_for_the_machines_of_the_published_recipes() -> None:
    for name in (ULTRA, A4):
        for preset, nodes in (("llama3-8b", 2), ("llama3-70b", 8)):
            files = (VALUES / f"{preset}.yaml", VALUES / name / f"{preset}.yaml", VALUES / f"site.{name}.example.yaml")
            found = rendered(files=files, name=name)
            spec = one("JobSet", found)["spec"]["replicatedJobs"][0]["template"]["spec"]
            assert spec["parallelism"] == nodes
            topology = pod(found)["metadata"]["annotations"]["kueue.x-k8s.io/podset-preferred-topology"]
            assert topology == "kubernetes.io/hostname"


# -- A4X: racks


def test_a_rack_has_one_domain_of_the_run_and_pods_claim_both() -> None:
    """GoogleCloudPlatform/cluster-toolkit @ 1047080, examples/gke-a4x/nccl-jobset-example.yaml."""
    found = run("queue.name=q", name=A4X)
    domain, template = one("ComputeDomain", found), one("ResourceClaimTemplate", found)
    name = one("JobSet", found)["metadata"]["name"]
    channel = domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
    assert (domain["metadata"]["name"], domain["spec"]["numNodes"], channel) == (name, 2, f"{name}-channel")
    assert template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 4
    assert pod(found)["spec"]["resourceClaims"] == [
        {"name": "compute-domain-channel", "resourceClaimTemplateName": channel},
        {"name": "rdma", "resourceClaimTemplateName": template["metadata"]["name"]},
    ]
    claims = container(found)["resources"]["claims"]
    assert claims == [{"name": "compute-domain-channel"}, {"name": "rdma"}]
    assert container(found)["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    arm = [each for each in pod(found)["spec"]["tolerations"] if each["key"] == "kubernetes.io/arch"]
    assert arm == [{"key": "kubernetes.io/arch", "operator": "Exists"}]


def test_a4x_by_networks_has_four_of_them() -> None:
    found = run("network.mode=annotation", name=A4X)
    assert interfaces(found) == {"eth0": "default", "eth1": "gvnic-1"} | dict(list(RDMA.items())[:4])
    assert [each["name"] for each in pod(found)["spec"]["resourceClaims"]] == ["compute-domain-channel"]


def test_a_run_of_several_racks_is_placed_in_slices() -> None:
    """AI-Hypercomputer/gpu-recipes @ 2e1fd5e, training/a4x: a block, in slices of 16 machines of a subblock."""
    block, rack = (f"cloud.google.com/gce-topology-{part}" for part in ("block", "subblock"))
    sets = ("topology.mode=required", f"topology.level={block}", "topology.sliceSize=16", f"topology.sliceLevel={rack}")
    found = rendered("nodes=32", "queue.name=q", *sets, files=(), name=A4X)
    annotations = pod(found)["metadata"]["annotations"]
    assert annotations["kueue.x-k8s.io/podset-required-topology"] == block
    assert annotations["kueue.x-k8s.io/podset-slice-required-topology"] == rack
    assert annotations["kueue.x-k8s.io/podset-slice-size"] == "16"
    assert one("ComputeDomain", found)["spec"]["numNodes"] == 32


def test_the_queue_of_a4x_counts_claims_and_knows_the_racks() -> None:
    site = VALUES / f"site.{A4X}.example.yaml"
    found = rendered_setup("nodes=4", files=(site,), name=A4X)
    (group,) = one("ClusterQueue", found)["spec"]["resourceGroups"]
    quotas = {each["name"]: each["nominalQuota"] for each in group["flavors"][0]["resources"]}
    assert (quotas["mrdma.google.com"], quotas["compute-domain-default-channel.nvidia.com"]) == ("16", "4")
    assert (
        one("ResourceFlavor", found)["spec"]["tolerations"] == pod(run("queue.name=q", name=A4X))["spec"]["tolerations"]
    )
    levels = [each["nodeLabel"] for each in one("Topology", found)["spec"]["levels"]]
    assert levels.index("cloud.google.com/gce-topology-subblock") == 1
    assert set(levels) - {"kubernetes.io/hostname"} <= set(target(A4X).machines["a4x-highgpu-4g"].labels)


def test_a_chart_of_claims_wants_the_kubernetes_that_has_them() -> None:
    assert 'kubeVersion: ">=1.34.0-0"' in chart(name=A4X).files["Chart.yaml"]
    assert 'kubeVersion: ">=1.29.0-0"' in chart(name=ULTRA).files["Chart.yaml"]


def test_a4x_max_takes_gib_from_the_image_and_its_adapters_by_claim() -> None:
    """GoogleCloudPlatform/container-engine-accelerators @ 992db81, gpudirect-rdma/nccl-test-a4x-max-jobset.yaml."""
    with pytest.raises(ChartgenError, match=r"launchers.megatron-lm.image: nvcr.io/nvidia/nemo:"):
        run("machineType=a4x-maxgpu-4g-metal", name=A4X)
    found = run(*MAX, name=A4X)
    assert "/usr/local/gib" not in mounts(container(found))
    assert mounts(container(found))["/usr/local/nvidia"]["name"] == "nvidia-libraries"
    assert container(found)["securityContext"] == security("IPC_LOCK")
    (request,) = one("ResourceClaimTemplate", found)["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["count"] == 8
    assert one("ComputeDomain", found)["spec"]["numNodes"] == 2
    with pytest.raises(ChartgenError, match=r"network.subnetworks.*8 RDMA adapters"):
        run(*MAX, "network.mode=annotation", name=A4X)
