"""The setup charts: queues that cover the pods, claims with their storage, networks, TensorBoard."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from rendered import VALUES, Objects, container, one, pod, rendered, rendered_setup, setup_chart, target

from chartgen.errors import ChartgenError
from chartgen.kube.workloads import find_workers, program_of
from chartgen.linter import find_presets, lint

TARGETS = ("gke-a3high", "gke-a3mega", "gke-a3ultra")
SITE = VALUES / "site.gke-a3high.example.yaml"
TENSORBOARD = "setup.tensorboard.enabled=true"


def setup(*sets: str, files: tuple[Path, ...] = (SITE,), name: str = "gke-a3high", **more: Any) -> Objects:
    return rendered_setup(*sets, files=files, name=name, **more)


def kinds(found: Objects) -> list[str]:
    return sorted(item["kind"] for item in found)


# -- scope


@pytest.mark.parametrize("name", TARGETS)
def test_no_values_create_nothing(name: str) -> None:
    assert setup(files=(), name=name) == []


def test_a_site_file_creates_what_it_names() -> None:
    assert kinds(setup()) == sorted(
        ["ClusterQueue", "Deployment", "LocalQueue", "PersistentVolumeClaim", "ResourceFlavor", "Service"]
        + ["StorageClass", "Topology"]
        + ["GKENetworkParamSet", "Network"] * 4
    )


def test_a_second_team_installs_its_namespaces_half_alone() -> None:
    assert kinds(setup("setup.cluster=false")) == ["Deployment", "LocalQueue", "PersistentVolumeClaim", "Service"]
    assert not {"Deployment", "LocalQueue", "PersistentVolumeClaim"} & set(kinds(setup("setup.namespace=false")))


@pytest.mark.parametrize("name", TARGETS)
def test_lint_finds_nothing(name: str) -> None:
    assert (
        lint(setup_chart(name), {**find_presets(name, VALUES), "site": (VALUES / f"site.{name}.example.yaml",)}) == []
    )


# -- queue


@pytest.mark.parametrize("name", TARGETS)
def test_queue_covers_all_that_the_runs_pods_request(name: str) -> None:
    requests = 'launchers.nemo-1.resources.requests={"cpu": "64", "memory": "64Gi", "ephemeral-storage": "1Ti"}'
    run = rendered("queue.name=q", files=(), json=(requests,), name=name)
    (group,) = one("ClusterQueue", setup("queue.name=q", files=(), name=name))["spec"]["resourceGroups"]
    assert set(container(run)["resources"]["requests"]) <= set(group["coveredResources"])
    (flavor,) = group["flavors"]
    assert [resource["name"] for resource in flavor["resources"]] == group["coveredResources"]


IB = "network.interface=infiniband"
RDMA = (IB, "network.resource=rdma/hca_shared_devices_a")
FPGA = {"example.com/fpga": "3"}


@pytest.mark.parametrize(
    ("name", "sets", "more", "resource", "quota"),
    [
        ("onprem-p8000", RDMA, {}, "rdma/hca_shared_devices_a", "32"),
        ("onprem-p8000", (*RDMA, "network.resourceCount=1"), {}, "rdma/hca_shared_devices_a", "4"),
        ("onprem-p8000", (IB,), {}, "nvidia.com/hostdev", "32"),
        ("eks-p5", ("network.hugePages=5120Mi",), {"memory": "500Gi"}, "hugepages-2Mi", "20480Mi"),
        ("eks-p5", (), FPGA, "example.com/fpga", "12"),
        ("gke-a3high", (), FPGA, "example.com/fpga", "12"),
        ("gke-a3mega", (), FPGA, "example.com/fpga", "12"),
        ("onprem-p8000", (IB,), {"ephemeral-storage": "1.5Ti"}, "ephemeral-storage", "8Ti"),
    ],
)
def test_queue_covers_what_values_make_pods_request(
    name: str, sets: tuple[str, ...], more: dict[str, str], resource: str, quota: str
) -> None:
    own = {"requests": more, "limits": more}
    given: dict[str, Any] = {"json": (f"launchers.megatron-lm.resources={json.dumps(own)}",)} if more else {}
    run = find_workers(rendered(*sets, "queue.name=q", "nodes=4", files=(), name=name, **given))
    assert run
    requests = set(program_of(run.pod)["resources"]["limits"])
    assert resource in requests
    # the queue of a site whose file does not say how many machines a run has
    for nodes in ("nodes=4", "setup.quota.nodes=4"):
        found = setup(*sets, "queue.name=q", nodes, files=(), name=name, **given)
        (group,) = one("ClusterQueue", found)["spec"]["resourceGroups"]
        assert requests <= set(group["coveredResources"])
        quotas = {each["name"]: each["nominalQuota"] for each in group["flavors"][0]["resources"]}
        assert quotas[resource] == quota


def test_a_queue_covers_what_kueue_counts_claimed_devices_as() -> None:
    more = ('setup.quota.resources={"example.com/channel": "1"}',)
    (group,) = one("ClusterQueue", setup("queue.name=q", "nodes=4", files=(), json=more))["spec"]["resourceGroups"]
    assert {"name": "example.com/channel", "nominalQuota": "4"} in group["flavors"][0]["resources"]


@pytest.mark.parametrize(
    ("given", "quota"),
    [
        ({"a4x-highgpu-4g": {"adapters": "4"}, "a4x-maxgpu-4g-metal": {"adapters": "8"}}, ("8", "16")),
        ({"adapters": "4", "a4x-maxgpu-4g-metal": {"adapters": "8"}}, ("8", "16")),
        ({"adapters": "4"}, ("8", "8")),
    ],
)
def test_what_a_queue_has_more_may_depend_on_the_machine_type(given: dict[str, Any], quota: tuple[str, ...]) -> None:
    for machine, expected in zip(("a4x-highgpu-4g", "a4x-maxgpu-4g-metal"), quota, strict=True):
        sets = ("queue.name=q", "nodes=2", f"machineType={machine}")
        more = (f"setup.quota.resources={json.dumps(given)}",)
        (group,) = one("ClusterQueue", setup(*sets, files=(), name="gke-a4x", json=more))["spec"]["resourceGroups"]
        assert {"name": "adapters", "nominalQuota": expected} in group["flavors"][0]["resources"]
        assert machine not in group["coveredResources"]


@pytest.mark.parametrize("name", TARGETS)
def test_flavor_and_pods_have_the_same_tolerations_and_machine(name: str) -> None:
    flavor = one("ResourceFlavor", setup("queue.name=q", files=(), name=name))["spec"]
    spec = pod(rendered("queue.name=q", files=(), name=name))["spec"]
    assert flavor["tolerations"] == spec["tolerations"]
    assert flavor["nodeLabels"] == spec["nodeSelector"]


def test_quota_follows_the_machines_of_the_run() -> None:
    def gpus(*sets: str) -> str:
        flavors = one("ClusterQueue", setup(*sets))["spec"]["resourceGroups"][0]["flavors"]
        (quota,) = (item["nominalQuota"] for item in flavors[0]["resources"] if item["name"] == "nvidia.com/gpu")
        return str(quota)

    assert (gpus("nodes=2"), gpus("nodes=2", "setup.quota.nodes=5")) == ("16", "40")


# GoogleCloudPlatform/cluster-toolkit @ 1047080, examples/gke-a3-megagpu and gke-a3-highgpu,
# kueue-configuration.yaml.tftpl
LEVELS = [f"cloud.google.com/gce-topology-{part}" for part in ("block", "subblock", "host")]


@pytest.mark.parametrize("name", TARGETS)
def test_levels_of_the_topology_are_the_vendors(name: str) -> None:
    levels = one("Topology", setup("queue.name=q", files=(), name=name))["spec"]["levels"]
    assert [level["nodeLabel"] for level in levels] == [*LEVELS, "kubernetes.io/hostname"]
    for machine in target(name).machines.values():
        assert set(LEVELS) <= set(machine.labels), "simulated machines have them"


# -- queues of teams

PREEMPTION = {
    "withinClusterQueue": "LowerPriority",
    "reclaimWithinCohort": "Any",
    "borrowWithinCohort": {"policy": "Never"},
}
TEAMS = {
    "vision": {"nodes": 2, "namespaces": ["vision", "vision-dev"]},
    "speech": {"gpus": 12, "namespaces": ["speech"]},
}


def queues(*sets: str, teams: dict[str, Any] | None = None, flavors: list[Any] | None = None) -> Objects:
    given = {"setup.queues": teams or {}, "setup.flavors": flavors or []}
    return setup("queue.name=q", *sets, files=(), json=[f"{key}={json.dumps(value)}" for key, value in given.items()])


def named(kind: str, found: Objects) -> dict[str, Any]:
    return {item["metadata"]["name"]: item["spec"] for item in found if item["kind"] == kind}


def amounts(queue: dict[str, Any], resource: str = "nvidia.com/gpu") -> dict[str, dict[str, str]]:
    """Return what a queue has of a resource, by flavor."""
    (group,) = queue["resourceGroups"]
    return {
        flavor["name"]: {key: value for key, value in each.items() if key != "name"}
        for flavor in group["flavors"]
        for each in flavor["resources"]
        if each["name"] == resource
    }


def test_a_waiting_run_evicts_no_run_of_equal_priority() -> None:
    assert named("ClusterQueue", queues())["q"]["preemption"] == PREEMPTION


def test_each_field_of_preemption_has_a_value_for_all_queues_and_for_one() -> None:
    borrow = "setup.preemption.borrowWithinCohort"
    own = {"withinClusterQueue": "Never", "borrowWithinCohort": {"maxPriorityThreshold": 9}}
    teams = {**TEAMS, "vision": {**TEAMS["vision"], "preemption": own}}
    made = named("ClusterQueue", queues(f"{borrow}.policy=LowerPriority", teams=teams))
    assert made["speech"]["preemption"] == {**PREEMPTION, "borrowWithinCohort": {"policy": "LowerPriority"}}
    assert made["vision"]["preemption"] == {
        "withinClusterQueue": "Never",
        "reclaimWithinCohort": "Any",
        "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 9},
    }


def test_each_team_has_a_queue_and_its_namespaces_lead_to_it() -> None:
    found = queues(teams=TEAMS)
    made = named("ClusterQueue", found)
    assert list(made) == ["speech", "vision"]
    (expression,) = made["vision"]["namespaceSelector"]["matchExpressions"]
    assert expression == {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["vision", "vision-dev"]}
    local = [item for item in found if item["kind"] == "LocalQueue"]
    assert {
        (each["metadata"]["namespace"], each["metadata"]["name"], each["spec"]["clusterQueue"]) for each in local
    } == {
        ("speech", "speech", "speech"),
        ("vision", "vision", "vision"),
        ("vision-dev", "vision", "vision"),
    }
    assert list(named("ResourceFlavor", found)) == list(named("Topology", found)) == ["q"], "they share the machines"


def test_a_quota_is_in_machines_or_in_gpus() -> None:
    made = named("ClusterQueue", queues(teams=TEAMS))
    assert [amounts(made[team])["q"]["nominalQuota"] for team in TEAMS] == ["16", "12"]
    two, one_and_a_half = (amounts(made[team], "memory")["q"]["nominalQuota"] for team in TEAMS)
    assert int(one_and_a_half.removesuffix("Gi")) == math.ceil(int(two.removesuffix("Gi")) * 3 / 4)


def test_teams_share_a_cohort_with_limits_of_their_own() -> None:
    shared = {team: {**given, "cohort": "gpus"} for team, given in TEAMS.items()}
    shared["vision"] |= {"borrowing": 0, "lending": 1, "weight": 0.5}
    made = named("ClusterQueue", queues(teams=shared))
    assert [each["cohortName"] for each in made.values()] == ["gpus", "gpus"]
    assert amounts(made["vision"])["q"] == {"nominalQuota": "16", "borrowingLimit": "0", "lendingLimit": "8"}
    assert amounts(made["speech"])["q"] == {"nominalQuota": "12"}
    assert (made["vision"]["fairSharing"], "fairSharing" in made["speech"]) == ({"weight": "0.5"}, False)


def test_an_older_api_calls_the_cohort_otherwise() -> None:
    found = queues("setup.kueueVersion=v1beta1", teams={"q": {"nodes": 1, "cohort": "gpus"}})
    assert named("ClusterQueue", found)["q"]["cohort"] == "gpus"


FLAVORS = [{"name": "reserved", "nodeLabels": {"example.com/reservation": "r1"}}, {"name": "spot"}]


def test_flavors_have_labels_of_their_own_and_keep_their_order() -> None:
    teams = {"vision": {"nodes": {"reserved": 2}}, "speech": {"nodes": 1, "cohort": "all", "borrowing": {"spot": 3}}}
    found = queues(teams=teams, flavors=FLAVORS)
    flavors, made = named("ResourceFlavor", found), named("ClusterQueue", found)
    assert flavors["reserved"]["nodeLabels"] == flavors["spot"]["nodeLabels"] | {"example.com/reservation": "r1"}
    assert flavors["reserved"]["tolerations"] == flavors["spot"]["tolerations"]
    assert list(amounts(made["vision"])) == ["reserved", "spot"]
    assert [each["nominalQuota"] for each in amounts(made["vision"]).values()] == ["16", "0"]
    assert amounts(made["speech"])["spot"] == {"nominalQuota": "8", "borrowingLimit": "24"}
    assert "borrowingLimit" not in amounts(made["speech"])["reserved"]


@pytest.mark.parametrize(
    ("teams", "message"),
    [
        ({"vision": {}}, r"queues\.vision"),
        ({"vision": {"nodes": 1, "gpus": 8}}, r"queues\.vision"),
        ({"vision": {"nodes": 1, "cohrt": "a"}}, r"cohrt.*queues\.vision"),
        ({"Vision": {"nodes": 1}}, r"Vision"),
        ({"vision": {"nodes": {"spot": 1}}}, r"queues\.vision: no flavor spot"),
    ],
)
def test_a_wrong_queue_of_a_team_is_refused(teams: dict[str, Any], message: str) -> None:
    with pytest.raises(ChartgenError, match=message):
        queues(teams=teams)


# -- storage


@pytest.mark.parametrize("name", TARGETS)
def test_filestore_claim_and_its_class(name: str) -> None:
    claim = "setup.claims.training"
    sets = (f"{claim}.size=2Ti", f"{claim}.filestore.network=my-vpc", f"{claim}.filestore.tier=enterprise")
    found = setup(*sets, files=(), name=name)
    made, wanted = one("StorageClass", found), one("PersistentVolumeClaim", found)
    assert made["provisioner"] == "filestore.csi.storage.gke.io"
    assert made["parameters"] == {"tier": "enterprise", "network": "my-vpc"}
    assert (made["volumeBindingMode"], made["allowVolumeExpansion"]) == ("Immediate", True)
    assert wanted["spec"]["storageClassName"] == made["metadata"]["name"] == "ml-training"
    assert wanted["spec"]["accessModes"] == ["ReadWriteMany"]
    assert wanted["spec"]["resources"]["requests"]["storage"] == "2Ti"
    assert wanted["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_the_runs_find_the_claim() -> None:
    claims = [
        volume["persistentVolumeClaim"]["claimName"]
        for volume in pod(rendered(files=(SITE,), name="gke-a3high"))["spec"]["volumes"]
        if "persistentVolumeClaim" in volume
    ]
    assert claims == [one("PersistentVolumeClaim", setup())["metadata"]["name"]]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("filestore.tier=fast", r"claims\.training\.filestore\.tier"),
        ("filestore.tier=zonal", r"claims\.training\.filestore.*network"),
        ("filestor.network=my-vpc", r"claims\.training.*filestor"),
    ],
)
def test_a_wrong_claim_is_refused(value: str, message: str) -> None:
    with pytest.raises(ChartgenError, match=message):
        setup(f"setup.claims.training.{value}", files=())


# -- networks


def parameters(found: Objects) -> dict[str, tuple[str, str]]:
    sets = [item for item in found if item["kind"] == "GKENetworkParamSet"]
    modes = {item["metadata"]["name"]: item["spec"]["deviceMode"] for item in sets}
    assert {name for name, mode in modes.items() if mode != "NetDevice"} == {name for name in modes if "rdma" in name}
    return {item["metadata"]["name"]: (item["spec"]["vpc"], item["spec"]["vpcSubnet"]) for item in sets}


@pytest.mark.parametrize(("name", "count"), [("gke-a3high", 4), ("gke-a3mega", 8)])
def test_networks_are_those_of_the_pods(name: str, count: int) -> None:
    found = setup("setup.networks=dev-gpu-", files=(), name=name)
    assert parameters(found) == {f"vpc{i + 1}": (f"dev-gpu-{i}", f"dev-gpu-{i}") for i in range(count)}
    networks = [item for item in found if item["kind"] == "Network"]
    assert [item["spec"]["parametersRef"]["name"] for item in networks] == [f"vpc{i + 1}" for i in range(count)]
    annotations = pod(rendered("network.hostNetwork=false", files=(), name=name))["metadata"]["annotations"]
    assert all(f'"{item["metadata"]["name"]}"' in annotations["networking.gke.io/interfaces"] for item in networks)


def test_networks_of_rdma_are_those_of_the_cluster_toolkit() -> None:
    """GoogleCloudPlatform/cluster-toolkit @ 1047080, examples/gke-a3-ultragpu/gke-a3-ultragpu.yaml."""
    rdma = {f"rdma-{i}": ("dev-rdma-net", f"dev-rdma-sub-{i}") for i in range(8)}
    found = setup("setup.networks=dev", files=(), name="gke-a3ultra")
    assert parameters(found) == {"gvnic-1": ("dev-net-1", "dev-sub-1")} | rdma
    assert parameters(setup("setup.networks=dev", "network.gvnic=", files=(), name="gke-a3ultra")) == rdma
    # devices that pods claim need no networks
    assert setup("setup.networks=dev", "network.mode=claims", files=(), name="gke-a3ultra") == []


def test_networks_with_names_of_their_own() -> None:
    names = "network.subnetworks={a,b,c,d}"
    listed = '[{"vpc": "n0", "subnet": "s0"}, {"vpc": "n1"}, {"vpc": "n2"}, {"vpc": "n3"}]'
    found = parameters(setup(names, files=(), json=(f"setup.networks={listed}",)))
    assert found == {"a": ("n0", "s0"), "b": ("n1", "n1"), "c": ("n2", "n2"), "d": ("n3", "n3")}


def test_as_many_networks_as_interfaces() -> None:
    with pytest.raises(ChartgenError, match=r"setup\.networks: has 1 networks, network\.subnetworks has 4"):
        setup(files=(), json=('setup.networks=[{"vpc": "only"}]',))


# -- TensorBoard


def tensorboard(*sets: str, **more: Any) -> tuple[Any, Any, Any]:
    """The Deployment's pod template, its container, and the volume of the outputs."""
    found = one("Deployment", setup(*sets, **more))
    template = found["spec"]["template"]
    assert found["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (program,) = template["spec"]["containers"]
    (outputs,) = (volume for volume in template["spec"]["volumes"] if volume["name"] == "outputs")
    return template, program, outputs


def outputs_mount(program: Any) -> Any:
    (found,) = (mount for mount in program["volumeMounts"] if mount["mountPath"] == "/outputs")
    return found


def test_service_leads_to_the_pod_inside_the_cluster_only() -> None:
    template, program, _ = tensorboard()
    service = one("Service", setup())
    assert (service["spec"]["type"], service["metadata"]["name"]) == ("ClusterIP", "my-run-tensorboard")
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    (port,) = service["spec"]["ports"]
    assert [item["containerPort"] for item in program["ports"] if item["name"] == port["targetPort"]] == [6006]


def test_it_runs_without_privileges_and_without_a_key_to_the_cluster() -> None:
    template, program, _ = tensorboard()
    assert template["spec"]["automountServiceAccountToken"] is False
    assert template["spec"]["securityContext"]["runAsNonRoot"] is True
    assert program["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {probe for probe in program if probe.endswith("Probe")} == {
        "startupProbe",
        "readinessProbe",
        "livenessProbe",
    }
    assert program["resources"]["limits"]["memory"] == program["resources"]["requests"]["memory"] == "2Gi"
    assert not {"Role", "RoleBinding", "ClusterRole"} & set(kinds(setup()))


@pytest.mark.parametrize(
    ("source", "volume", "path"),
    [
        ("pvc://training", {"persistentVolumeClaim": {"claimName": "training"}}, None),
        ("pvc://training/outputs", {"persistentVolumeClaim": {"claimName": "training"}}, "outputs"),
        ("nfs://files.zone/exports", {"nfs": {"server": "files.zone", "path": "/exports", "readOnly": True}}, None),
        (
            "gs://my-logs/runs",
            {
                "csi": {
                    "driver": "gcsfuse.csi.storage.gke.io",
                    "readOnly": True,
                    "volumeAttributes": {"bucketName": "my-logs", "mountOptions": "only-dir=runs"},
                }
            },
            None,
        ),
    ],
)
def test_it_reads_the_runs_outputs_wherever_they_are(source: str, volume: dict[str, Any], path: str | None) -> None:
    template, program, outputs = tensorboard(f"storage.outputs.from={source}")
    assert outputs == {"name": "outputs", **volume}
    assert outputs_mount(program).get("subPath") == path
    assert outputs_mount(program)["readOnly"] is True
    assert len(template["spec"]["volumes"]) == len(program["volumeMounts"]) == 2
    annotations = template["metadata"].get("annotations", {})
    assert (annotations.get("gke-gcsfuse/volumes") == "true") is source.startswith("gs://")


def test_directory_and_image_are_values() -> None:
    _, program, _ = tensorboard("setup.tensorboard.directory=ml/gpt3", "setup.tensorboard.image=mine/tensorboard:1")
    assert "--logdir=/outputs/ml/gpt3" in program["args"]
    assert program["image"] == "mine/tensorboard:1"
    assert "--logdir=/outputs" in tensorboard()[1]["args"]


@pytest.mark.parametrize("source", ["disk://", "memory://"])
def test_outputs_that_no_other_pod_can_read_are_refused(source: str) -> None:
    with pytest.raises(ChartgenError, match=r"setup\.tensorboard\.enabled: storage\.outputs\.from is (disk|memory)://"):
        setup(TENSORBOARD, f"storage.outputs.from={source}", files=())


def test_an_image_without_a_fixed_tag_is_refused() -> None:
    with pytest.raises(ChartgenError, match=r"setup\.tensorboard\.image"):
        setup("setup.tensorboard.image=tensorflow/tensorflow:latest")
