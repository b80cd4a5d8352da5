"""Checks of what a machine type has against what a job asks for."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from check_helpers import job, judge, published
from pairs import TARGETS
from rendered import target

from chartgen.checks.job import Job
from chartgen.checks.machine import MACHINE, exceeds, quantity

RESOURCES = "launchers.megatron-lm.resources"
DOWNLOAD = ("launcher=download", "data.source=hf://org/set")
IB = ("network.interface=infiniband",)
AFFINITY = 'affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [%s]}}'
HOST_TERM = '{"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}'
ZONE_TERM = '{"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {}}'

# target, --set flags, id, key, a part of the message
WRONG = [
    # memory and processors
    ("gke-a3mega", ["sharedMemory=2Ti"], "shared-memory-of-the-machine", "sharedMemory", "2Ti is more than the 1827Gi"),
    ("onprem-p8000", ["sharedMemory=1001Gi"], "shared-memory-of-the-machine", "sharedMemory", "1000Gi of P8000"),
    ("eks-p5", ["sharedMemory=1938411Mi"], "shared-memory-of-the-machine", "sharedMemory", "1938410Mi of p5.48xlarge"),
    (
        "gke-a3mega",
        [f"{RESOURCES}.limits.memory=200Gi"],
        "shared-memory-of-the-machine",
        "sharedMemory",
        "250Gi counts to the memory limit 200Gi",
    ),
    (
        "gke-a3mega",
        [f"{RESOURCES}.requests.cpu=256"],
        "requests-of-the-machine",
        f"{RESOURCES}.requests.cpu",
        "the 207410m of",
    ),
    ("eks-p5", [f"{RESOURCES}.requests.cpu=192"], "requests-of-the-machine", f"{RESOURCES}.requests.cpu", "191450m"),
    (
        "gke-a3high",
        [f"{RESOURCES}.requests.memory=2Ti"],
        "requests-of-the-machine",
        f"{RESOURCES}.requests.memory",
        "1827Gi",
    ),
    ("gke-a3high", [f"{RESOURCES}.limits.memory=2Ti"], "requests-of-the-machine", f"{RESOURCES}.limits.memory", "2Ti"),
    (
        "gke-a3high",
        [f"{RESOURCES}.requests.memory=3e12"],
        "requests-of-the-machine",
        f"{RESOURCES}.requests.memory",
        "3e12",
    ),
    (
        "eks-p5",
        [f"{RESOURCES}.requests.vpc\\.amazonaws\\.com/efa=33"],
        "requests-of-the-machine",
        f"{RESOURCES}.requests",
        "vpc.amazonaws.com/efa 33 is more than the 32",
    ),
    (
        "gke-a3mega",
        [f"{RESOURCES}.requests.memory=64GB"],
        "readable-quantities",
        f"{RESOURCES}.requests.memory",
        "'64GB'",
    ),
    ("gke-a3mega", [f"{RESOURCES}.limits.cpu=8 cores"], "readable-quantities", f"{RESOURCES}.limits.cpu", "'8 cores'"),
    (
        "gke-a3mega",
        ["launcher=download", "launchers.download.resources.requests.cpu=many"],
        "readable-quantities",
        "launchers.download.resources.requests.cpu",
        "cpu 'many'",
    ),
    (
        "gke-a3mega",
        [f"{RESOURCES}.requests.cpu=64", f"{RESOURCES}.limits.cpu=32"],
        "requests-within-limits",
        f"{RESOURCES}.requests.cpu",
        "64 is more than its limit 32",
    ),
    # GPUs
    (
        "gke-a3mega",
        ["launcher=download", "launchers.download.resources.limits.nvidia\\.com/gpu=1"],
        "programs-without-gpus",
        "launchers.download.resources.limits",
        "download uses no GPU",
    ),
    (
        "eks-p5",
        ["launcher=megatron-preprocess", "launchers.megatron-preprocess.resources.limits.nvidia\\.com/gpu=1"],
        "programs-without-gpus",
        "launchers.megatron-preprocess.resources.limits",
        "nvidia.com/gpu",
    ),
    (
        "gke-a3mega",
        [f"{RESOURCES}.limits.nvidia\\.com/gpu=4"],
        "gpus-are-counted-once",
        f"{RESOURCES}.limits",
        "gpusPerNode",
    ),
    ("gke-a3mega", ["gpusPerNode=4"], "gpus-of-gpudirect", "gpusPerNode", "4 of 8 GPUs"),
    ("gke-a3high", ["gpusPerNode=1"], "gpus-of-gpudirect", "gpusPerNode", "1 of 8 GPUs"),
    # huge pages
    ("eks-p5", ["network.hugePages=5120Mi"], "huge-pages-need-cpu-or-memory", "network.hugePages", "5120Mi"),
    (
        "gke-a3mega",
        [f"{RESOURCES}.limits.hugepages-1Gi=4Gi"],
        "huge-pages-need-cpu-or-memory",
        f"{RESOURCES}.limits.hugepages-1Gi",
        "4Gi of huge pages",
    ),
    # adapters
    ("eks-p5", ["network.adapters=33"], "efa-adapters", "network.adapters", "33 is more than the 32 EFA adapters"),
    ("eks-p5", ["machineType=p5en.48xlarge", "network.adapters=17"], "efa-adapters", "network.adapters", "the 16 EFA"),
    (
        "eks-p5",
        ["machineType=p6-b200.48xlarge", "network.adapters=10"],
        "efa-adapters",
        "network.adapters",
        "the 8 EFA",
    ),
    ("eks-p5", ["network.adapters=4", "network.interface=tcp"], "efa-adapters", "network.adapters", "interface tcp"),
    (
        "eks-p5",
        ["nodes=2", "network.interface=tcp", "env.FI_PROVIDER=efa"],
        "provider-of-libfabric",
        "env.FI_PROVIDER",
        "TCP",
    ),
    ("eks-p5", ["nodes=2", "env.FI_PROVIDER=tcp"], "provider-of-libfabric", "env.FI_PROVIDER", "tcp leaves the EFA"),
    (
        "gke-a3mega",
        ["nodes=2", "env.FI_PROVIDER=efa"],
        "provider-of-libfabric",
        "env.FI_PROVIDER",
        "without EFA adapters",
    ),
    (
        "onprem-p8000",
        [*IB, "nodes=2", "network.resourceCount=9"],
        "infiniband-adapters",
        "network.resourceCount",
        "9 is more than the 8 nvidia.com/hostdev of P8000",
    ),
    *(
        ("oke-h100", [f"machineType={shape}", "network.mode=sriov"], "virtual-functions", "network.mode", "no virtual")
        for shape in ("BM.GPU.RTXPRO.8", "BM.GPU.GB200.4", "BM.GPU.GB300.4")
    ),
    # devices
    (
        "gke-a3mega",
        [f"{RESOURCES}.requests.example\\.com/fpga=1"],
        "devices-are-whole",
        f"{RESOURCES}.requests",
        "example.com/fpga 1 is not its limit",
    ),
    (
        "gke-a3mega",
        [f"{RESOURCES}.requests.hugepages-2Mi=1Gi", f"{RESOURCES}.limits.hugepages-2Mi=2Gi"],
        "devices-are-whole",
        f"{RESOURCES}.requests.hugepages-2Mi",
        "hugepages-2Mi 1Gi is not its limit",
    ),
    (
        "gke-a3mega",
        [f"{RESOURCES}.limits.example\\.com/fpga=500m"],
        "devices-are-whole",
        f"{RESOURCES}.limits",
        "example.com/fpga 500m is not a whole number",
    ),
    (
        "gke-a3mega",
        [f"{RESOURCES}.limits.memory=-1Gi"],
        "readable-quantities",
        f"{RESOURCES}.limits.memory",
        "'-1Gi' is not a quantity",
    ),
    # between machines
    (
        "onprem-p8000",
        ["nodes=2"],
        "network-between-machines",
        "network.interface",
        "with none, 2 machines would use TCP",
    ),
]

QWEN = "launchers.megatron-bridge.recipe=qwen3_30b_a3b_pretrain_config"
SPREAD = ("launcher=megatron-bridge", "nodes=2", "batch.global=64", "parallelism.expert=16")
FLEX = "launchers.megatron-bridge.config.model.moe_token_dispatcher_type"


def test_experts_of_several_machines_do_not_use_deepep_on_efa() -> None:
    """Also DeepEP of the user's choice; not another dispatcher, image or newer recipe, nor Grace, which has none."""
    nano = QWEN.replace("qwen3_30b_a3b_pretrain", "nemotron_3_nano_sft")
    wrong = ([QWEN], [f"{FLEX}=flex"], [nano, "launchers.megatron-bridge.image=nvcr.io/nvidia/nemo:26.08"])
    right = (
        *([], [QWEN, f"{FLEX}=alltoall"], [QWEN, "launchers.megatron-bridge.image=example.com/bridge-uccl:1"]),
        *(
            [QWEN, f"launchers.megatron-bridge.image=nvcr.io/nvidia/nemo:{release}"]
            for release in ("26.02", "26.08", "26.10")
        ),
        *([QWEN, "parallelism.expert=8"], [QWEN.replace("qwen3_30b_a3b", "deepseek_v3")]),
        [f"{FLEX}=flex", f"{FLEX.replace('token_dispatcher_type', 'flex_dispatcher_backend')}=hybridep"],
    )
    for sets in (*wrong, *right):
        found = [each.key for each in judge(MACHINE, job("eks-p5", *SPREAD, *sets)) if each.id == "deepep-on-efa"]
        assert found == (["parallelism.expert"] if sets in wrong else []), sets
    for elsewhere in ("eks-p6e-gb200", "aks-nd"):
        assert judge(MACHINE, job(elsewhere, *SPREAD, QWEN, "nodes=4")) == []


RIGHT = [
    ("gke-a3mega", ["sharedMemory=1827Gi"]),
    ("gke-a3mega", ["sharedMemory=1Ti", f"{RESOURCES}.limits.memory=1Ti"]),
    ("gke-a3mega", [f"{RESOURCES}.requests.cpu=207410m", f"{RESOURCES}.requests.memory=1500Gi"]),
    # a limit above the machine's is legal: only requests have to fit
    ("gke-a3mega", [f"{RESOURCES}.requests.cpu=64", f"{RESOURCES}.limits.cpu=512"]),
    ("gke-a3mega", [f"{RESOURCES}.limits.example\\.com/fpga=1"]),
    ("gke-a3mega", [f"{RESOURCES}.{kind}.example\\.com/fpga=2" for kind in ("requests", "limits")]),
    # what programs without GPUs run on is not known
    ("gke-a3mega", [*DOWNLOAD, "launchers.download.resources.requests.memory=4Ti"]),
    ("eks-p5", ["network.hugePages=5120Mi", f"{RESOURCES}.requests.memory=32000Mi"]),
    ("eks-p5", ["network.hugePages=5120Mi", f"{RESOURCES}.limits.cpu=8"]),
    ("eks-p5", [*DOWNLOAD, "network.hugePages=5120Mi"]),
    ("eks-p5", ["nodes=2", "network.adapters=32"]),
    ("eks-p5", ["nodes=2", "env.FI_PROVIDER=efa"]),
    ("eks-p5", ["env.FI_PROVIDER=efa"]),
    ("eks-p5", ["env.FI_PROVIDER=tcp"]),
    ("eks-p5", ["nodes=2", "network.interface=tcp"]),
    ("eks-p5", ["nodes=2", "network.interface=tcp", "env.FI_PROVIDER=tcp"]),
    ("eks-p5", ["gpusPerNode=4"]),
    ("onprem-p8000", ["nodes=2", *IB]),
    ("onprem-p8000", ["nodes=2", *IB, "network.resource=rdma/hca_shared_devices_a", "network.resourceCount=63"]),
    ("onprem-p8000", [*IB, "network.resourceCount=9"]),
    ("onprem-p8000", ["nodes=4", "network.interface=tcp"]),
    ("oke-h100", ["nodes=2", "network.mode=sriov"]),
    ("oke-h100", ["machineType=BM.GPU.GB200.4"]),
]


@pytest.mark.parametrize(("name", "sets", "rule", "key", "part"), WRONG)
def test_what_the_machine_cannot_give_is_found(name: str, sets: list[str], rule: str, key: str, part: str) -> None:
    every = judge(MACHINE, job(name, *sets))
    found = [said for said in every if (said.id, said.key) == (rule, key)]
    assert len(found) == 1, every
    assert part in found[0].message
    assert found[0].hint


@pytest.mark.parametrize(("name", "sets"), RIGHT)
def test_what_the_machine_gives_is_left_alone(name: str, sets: list[str]) -> None:
    assert judge(MACHINE, job(name, *sets)) == []


def test_no_published_configuration_is_refused() -> None:
    assert [(name, preset, said) for name, preset, one in published() for said in judge(MACHINE, one)] == []


@pytest.mark.parametrize("name", TARGETS)
def test_every_machine_type_passes_with_the_defaults(name: str) -> None:
    """But for one whose image must contain gIB, which no image of NVIDIA's does."""
    for machine in target(name).machines.values():
        found = [each.id for each in judge(MACHINE, job(name, f"machineType={machine.name}"))]
        assert found == (["gib-of-the-image"] if "gib" in machine.fabric else []), machine.name


@pytest.mark.parametrize(
    ("sets", "terms", "kept"),
    [
        ([], HOST_TERM, False),
        ([], f"{HOST_TERM}, {ZONE_TERM}", True),
        (["nodeSelector.topology\\.kubernetes\\.io/zone=us-west-2a"], HOST_TERM, True),
        (["network.interface=tcp"], HOST_TERM, True),
        (["nodes=1"], HOST_TERM, True),
    ],
)
def test_a_run_with_efa_stays_in_one_zone(sets: list[str], terms: str, kept: bool) -> None:
    said = judge(MACHINE, job("eks-p5", "nodes=2", *sets, json=[AFFINITY % terms]))
    assert [each.key for each in said if each.id == "one-zone"] == ([] if kept else ["affinity"])


def test_a_target_without_a_fabric_warns_of_tcp() -> None:
    several = job("onprem-p8000", "nodes=2", "network.interface=tcp")
    bare = replace(
        several.target, every_fragment=tuple(each for each in several.target.fragments if each.name != "infiniband")
    )
    (said,) = judge(MACHINE, Job(several.values, bare))
    assert (said.id, said.key, said.severity) == ("fabric-of-the-target", "nodes", "warning")
    assert judge(MACHINE, Job({**several.values, "nodes": 1}, bare)) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("8", "8"),
        ("0", "0"),
        ("191450m", "191.45"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1.5Gi", str(3 * 2**29)),
        ("1872Gi", str(1872 * 2**30)),
        ("1938410Mi", str(1938410 * 2**20)),
        ("1Ki", "1024"),
        ("1k", "1000"),
        ("2M", "2000000"),
        ("1Ei", str(2**60)),
        ("1E", str(10**18)),
        ("1E3", "1000"),
        ("1e-3", "0.001"),
        ("7n", "0.000000007"),
        ("+2u", "0.000002"),
        ("-1", "-1"),
    ],
)
def test_quantities_are_read_as_kubernetes_does(text: str, number: str) -> None:
    assert quantity(text) == Decimal(number)


@pytest.mark.parametrize(
    "text", ["", " 8", "8 ", "8GB", "8gi", "1K", "Gi", "8Gi ", "1,5", "0x10", "1e3Gi", "1e", "eight", "8\n"]
)
def test_what_kubernetes_refuses_is_no_quantity(text: str) -> None:
    assert quantity(text) is None


def test_only_more_exceeds() -> None:
    assert exceeds("1025Mi", "1Gi")
    assert not exceeds("1024Mi", "1Gi")
    assert not exceeds("much", "1Gi")
    assert not exceeds("1Gi", "much")
