"""InfiniBand by what each cloud hands out: exclusive adapters, one shared unit, settings of the machine type."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_runner import REPOSITORY, blocks
from rendered import (
    VALUES,
    Objects,
    container,
    env,
    job_spec,
    mounts,
    one,
    pod,
    rendered,
    rendered_setup,
    security,
    volumes,
)

AKS, COREWEAVE = "aks-nd", "coreweave"
# Azure/ai-infrastructure-on-azure @ a01b073, infrastructure_validations/aks/NCCL/helm/nccl-test/values.yaml
V5 = {
    "NCCL_IB_PCI_RELAXED_ORDERING": "1",
    "NCCL_IB_QPS_PER_CONNECTION": "4",
    "NCCL_IGNORE_CPU_AFFINITY": "1",
    "NCCL_MIN_NCHANNELS": "32",
    "NCCL_P2P_NET_CHUNKSIZE": "524288",
    "NCCL_PXN_DISABLE": "1",
}
OURS = {"NCCL_DEBUG": "WARN", "NCCL_NET": "IB", "NCCL_NET_PLUGIN": "none", "NCCL_SOCKET_IFNAME": "eth0"}


def run(*sets: str, name: str = AKS) -> Objects:
    return rendered("nodes=2", *sets, files=(), name=name)


def nccl(found: Objects) -> dict[str, str]:
    return {name: value for name, value in env(found).items() if name.startswith("NCCL_")}


@pytest.mark.parametrize("machine", ["Standard_ND96isr_H100_v5", "Standard_ND96isr_H200_v5"])
def test_an_aks_machine_gives_one_adapter_to_each_gpu(machine: str) -> None:
    found = run(f"machineType={machine}")
    assert container(found)["resources"]["limits"] == {"nvidia.com/gpu": "8", "rdma/ib": "8"}
    assert container(found)["securityContext"] == security("IPC_LOCK")
    assert nccl(found) == OURS | V5
    assert pod(found)["spec"]["nodeSelector"] == {"node.kubernetes.io/instance-type": machine}


@pytest.mark.parametrize("machine", ["Standard_ND128isr_NDR_GB200_v6", "Standard_ND128isr_GB300_v6"])
def test_a_rack_of_aks_has_a_compute_domain(machine: str) -> None:
    """Azure/ai-infrastructure-on-azure @ a01b073, …/aks/NCCL/helm/nccl-test/values-gb300.yaml."""
    found = run(f"machineType={machine}")
    assert container(found)["resources"]["limits"] == {"nvidia.com/gpu": "4", "rdma/ib": "4"}
    assert nccl(found) == OURS
    assert container(found)["resources"]["claims"] == [{"name": "compute-domain-channel"}]
    assert one("ComputeDomain", found)["spec"]["numNodes"] == 2
    for nodes, key in ((2, "nvidia.com/gpu.clique"), (19, "agentpool")):
        affinity = pod(run(f"machineType={machine}", f"nodes={nodes}"))["spec"]["affinity"]["podAffinity"]
        assert [each["topologyKey"] for each in affinity["requiredDuringSchedulingIgnoredDuringExecution"]] == [key]


def test_the_shared_plugin_of_aks_hands_out_one_unit() -> None:
    found = run("network.resource=rdma/shared_ib", "network.resourceCount=1")
    assert container(found)["resources"]["limits"]["rdma/shared_ib"] == "1"


def test_machines_of_a_run_on_aks_are_of_one_node_pool() -> None:
    (term,) = pod(run())["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    label = pod(run())["metadata"]["labels"]["run"]
    assert term == {"topologyKey": "agentpool", "labelSelector": {"matchLabels": {"run": label}}}
    assert "podAffinity" not in pod(rendered("nodes=1", files=(), name=AKS))["spec"]["affinity"]


def test_a_topology_file_and_a_user_win_over_the_machine_type() -> None:
    found = run("network.topologyFile=/opt/topo/topo.xml", "env.NCCL_MIN_NCHANNELS=many")
    assert nccl(found) == OURS | V5 | {"NCCL_TOPO_FILE": "/opt/topo/topo.xml", "NCCL_MIN_NCHANNELS": "many"}


def test_the_guide_brings_azures_topology_file_into_any_image(tmp_path: Path) -> None:
    (text,) = blocks(REPOSITORY / "docs" / "guides" / "aks-llama3.md", "yaml")
    (tmp_path / "topology.yaml").write_text(text)
    found = rendered("nodes=2", files=(tmp_path / "topology.yaml",), name=AKS)
    folder, _, name = nccl(found)["NCCL_TOPO_FILE"].rpartition("/")
    volume = volumes(found)[mounts(container(found))[folder]["name"]]
    assert (volume["configMap"], name) == ({"name": "nccl-topology"}, "ndv5-topo.xml")


def test_nothing_of_infiniband_without_it() -> None:
    for found in (run("network.interface=tcp"), rendered("nodes=1", files=(), name=AKS)):
        assert not V5.keys() & nccl(found).keys()
        assert "rdma/ib" not in container(found)["resources"]["limits"]
        assert container(found)["securityContext"] == security()


@pytest.mark.parametrize("machine", ["gd-8xh100ib-i128", "gd-8xh200ib-i128", "b200-8x", "b300-8x"])
def test_coreweave_shares_all_adapters_and_needs_no_capability(machine: str) -> None:
    """coreweave/nccl-tests @ cb86553, mpi-operator/nccl-test-distributed-{h100,b200,b300}-64-mpijob.yaml."""
    found = run(f"machineType={machine}", name=COREWEAVE)
    assert container(found)["resources"]["limits"] == {"nvidia.com/gpu": "8", "rdma/ib": "1"}
    assert container(found)["securityContext"] == security()
    assert nccl(found) == OURS | {"NCCL_IB_HCA": "ibp", "NCCL_COLLNET_ENABLE": "0"}
    # gb300-roce-* of the same folder: machines with RoCE have the same type
    flavor = {"backend.coreweave.cloud/flavor": "infiniband"}
    assert pod(found)["spec"]["nodeSelector"] == {"node.kubernetes.io/instance-type": machine} | flavor
    assert "podAffinity" not in pod(found)["spec"]["affinity"]


@pytest.mark.parametrize("machine", ["gb200-4x", "gb300-4x"])
def test_a_run_within_a_rack_stays_in_it(machine: str) -> None:
    """coreweave/nccl-tests @ cb86553, mpi-operator/nccl-test-distributed-{gb200,gb300}-nvl72-mpijob.yaml."""
    found = run(f"machineType={machine}", name=COREWEAVE)
    assert container(found)["resources"]["limits"] == {"nvidia.com/gpu": "4", "rdma/ib": "1"}
    settings = {"NCCL_CUMEM_ENABLE": "1", "NCCL_MNNVL_ENABLE": "1", "NCCL_NET_GDR_C2C": "1", "NCCL_SHM_DISABLE": "0"}
    assert nccl(found) == OURS | {"NCCL_IB_HCA": "ibp", **settings}
    assert env(found)["NVIDIA_IMEX_CHANNELS"] == "0"
    (term,) = pod(found)["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "nvidia.com/gpu.clique"
    wider = rendered("nodes=19", f"machineType={machine}", files=(), name=COREWEAVE)
    assert "podAffinity" not in pod(wider)["spec"]["affinity"]


@pytest.mark.parametrize("machine", ["gpu-h100-sxm", "gpu-h200-sxm", "gpu-b200-sxm"])
def test_nebius_has_no_resource_for_its_adapters(machine: str) -> None:
    """nebius/nebius-solutions-library @ 0616445, modules/nccl-test/files/helm/nccl-test."""
    found = run(f"machineType={machine}", name="nebius")
    assert container(found)["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert container(found)["securityContext"]["privileged"] is True
    assert nccl(found) == OURS | {"NCCL_IB_HCA": "mlx5", "NCCL_COLLNET_ENABLE": "0"}
    # one machine needs no network; a cluster with a device plugin needs no privilege
    alone = container(rendered(f"machineType={machine}", "nodes=1", files=(), name="nebius"))
    plugin = container(
        run(f"machineType={machine}", "network.resource=rdma/ib", "network.lockMemory=true", name="nebius")
    )
    assert plugin["resources"]["limits"]["rdma/ib"] == "8"
    assert (alone["securityContext"], plugin["securityContext"]) == (security(), security("IPC_LOCK"))


def test_crusoe_describes_its_virtual_machines_to_nccl() -> None:
    """crusoecloud/solutions-library @ 8becda6, cmk-nccltests/nccl-{h100,h200,b200,gb200}.yaml."""
    adapters = ",".join(f"mlx5_{number}:1" for number in range(5, 13))
    for machine, names in {"h200-141gb": "^mlx5_0:1", "b200-180gb": adapters, "b300-288gb": adapters}.items():
        found = run(f"machineType={machine}-sxm-ib.8x", name="crusoe")
        assert container(found)["resources"]["limits"] == {"nvidia.com/gpu": "8", "nvidia.com/hostdev": "8"}
        assert container(found)["securityContext"] == security("IPC_LOCK")
        assert env(found)["NCCL_IB_HCA"] == names
        assert env(found)["NCCL_TOPO_FILE"] == f"/opt/nccl_topo/{machine}-sxm-ib-cloud-hypervisor.xml"
        assert mounts(container(found))["/opt/nccl_topo"]["readOnly"] is True
        assert pod(found)["spec"]["runtimeClassName"] == "nvidia"
    found = run("network.adapters=mlx5_1", "network.topologyFile=/own.xml", name="crusoe")
    assert [env(found)[name] for name in ("NCCL_IB_HCA", "NCCL_TOPO_FILE")] == ["mlx5_1", "/own.xml"]
    found = run("machineType=gb200-186gb-nvl-ib.4x", name="crusoe")
    assert container(found)["resources"]["limits"] == {"nvidia.com/gpu": "4", "nvidia.com/hostdev": "4"}
    assert one("ComputeDomain", found)["spec"]["numNodes"] == 2
    assert nccl(found) == OURS
    assert "/opt/nccl_topo" not in mounts(container(found))


def test_the_queue_hands_out_adapters_too() -> None:
    (queue,) = (
        item for item in rendered_setup("nodes=4", "queue.name=q", files=(), name=AKS) if item["kind"] == "ClusterQueue"
    )
    (group,) = queue["spec"]["resourceGroups"]
    quotas = {each["name"]: each["nominalQuota"] for each in group["flavors"][0]["resources"]}
    assert (quotas["rdma/ib"], quotas["nvidia.com/gpu"]) == ("32", "32")


@pytest.mark.parametrize(
    ("name", "preset", "nodes"),
    [(name, *each) for name in (AKS, COREWEAVE, "crusoe", "nebius") for each in (("llama3-8b", 2), ("llama3-70b", 8))],
)
def test_overlays_have_the_published_number_of_machines(name: str, preset: str, nodes: int) -> None:
    files = (VALUES / f"{preset}.yaml", VALUES / name / f"{preset}.yaml", VALUES / f"site.{name}.example.yaml")
    assert job_spec(rendered(files=files, name=name))["parallelism"] == nodes
