"""What a run needs, on a real control plane: missing it is named with its cure, and is well once it is there."""

from __future__ import annotations

import json
from collections.abc import Iterator

import manifests
import pytest
from facts import has
from preflight_cluster import SPACE, apply, found, node, opened, placed, pod_spec, run, status

from chartgen.kube import (
    CLAIM,
    CLUSTER_QUEUE,
    JOBSET,
    LOCAL_QUEUE,
    NODE,
    STORAGE_CLASS,
    VOLCANO_QUEUE,
    Cluster,
    Kind,
    Object,
    wait_for,
)
from chartgen.rehearsal.controlplane import ControlPlane

engines = pytest.mark.engines


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane) -> Iterator[Cluster]:
    with opened(plane) as ward:
        yield ward


# -- queue


@engines
def test_a_queue_that_does_not_exist(cluster: Cluster) -> None:
    assert found(cluster, "queue", run(queue="nosuch")) == [
        (
            "fail",
            has("nosuch ward"),
            has("charts/TARGET-setup --namespace queue.name"),
        )
    ]


@engines
def test_a_stopped_queue(cluster: Cluster) -> None:
    def stop(kind: Kind, policy: str) -> None:
        cluster.patch(kind, "ward", {"spec": {"stopPolicy": policy}}, namespace=SPACE)

    for kind, flag in ((LOCAL_QUEUE, "--namespace doctor "), (CLUSTER_QUEUE, "")):
        name = kind.name.lower()
        stop(kind, "Hold")
        change = '--type merge --patch \'{"spec": {"stopPolicy": "None"}}\''
        expected = ("fail", f"{name} ward is stopped (Hold)", f"kubectl {flag}patch {name} ward {change}")
        assert found(cluster, "queue") == [expected]
        stop(kind, "None")
        wait_for(lambda: status(cluster, "queue") == ["pass"], what="that it is open again", timeout=180)


@engines
def test_a_queue_without_its_flavor(cluster: Cluster) -> None:
    _, _, held, local = manifests.queue("bare", 8, SPACE)
    apply(cluster, held, local)
    reason = "Can't admit new workloads: references missing ResourceFlavor(s): bare."
    wait_for(lambda: found(cluster, "queue", run(queue="bare"))[0][1].endswith(reason), what="the reason", timeout=180)
    ((word, _, fix),) = found(cluster, "queue", run(queue="bare"))
    assert (word, fix) == ("fail", "kubectl describe clusterqueue bare")


@engines
def test_a_queue_that_takes_no_runs_of_the_namespace(cluster: Cluster) -> None:
    made = manifests.queue("private", 32, SPACE)
    made[2]["spec"]["namespaceSelector"] = {"matchLabels": {"team": "other"}}
    apply(cluster, *made)
    text = "ClusterQueue private takes no runs of namespace doctor: its namespaceSelector leaves it out"
    assert found(cluster, "queue", run(queue="private"))[0][:2] == ("fail", text)


@engines
def test_a_quota_that_is_short_or_covers_too_little(cluster: Cluster) -> None:
    small = manifests.queue("small", 24, SPACE, topology=False)
    group = small[1]["spec"]["resourceGroups"][0]
    group["coveredResources"].remove("cpu")
    group["flavors"][0]["resources"].pop(0)
    small[0]["spec"]["nodeLabels"] = {"pool": "ward"}
    apply(cluster, *small)
    edit = "kubectl edit clusterqueue small: "
    assert found(cluster, "queue-quota", run(queue="small")) == [
        (
            "fail",
            has("ClusterQueue small cpu pods"),
            has(f"{edit}add cpu coveredResources"),
        ),
        (
            "fail",
            has("32 nvidia.com/gpu small ClusterQueue small 24 nvidia.com/gpu"),
            has(f"{edit}raise nominalQuota setup.quota.nodes nodes"),
        ),
    ]
    group["coveredResources"].append("cpu")
    group["flavors"][0]["resources"].append({"name": "cpu", "nominalQuota": "1000"})
    group["flavors"][0]["resources"][1]["nominalQuota"] = "32"
    apply(cluster, *small)
    assert status(cluster, "queue-quota", run(queue="small")) == ["pass"]


@engines
def test_what_a_cohort_lends_and_flavors_of_other_machines(cluster: Cluster) -> None:
    lent = manifests.queue("lent", 8, SPACE, topology=False)
    lent[1]["spec"]["cohortName"] = "hospital"
    lent[0]["spec"]["nodeLabels"] = {"pool": "ward"}
    apply(cluster, *lent)
    assert found(cluster, "queue-quota", run(queue="lent")) == [
        (
            "warn",
            has("32 nvidia.com/gpu lent borrowed"),
            "kubectl get clusterqueues shows what cohort hospital has",
        )
    ]
    ((word, text, _),) = found(cluster, "queue-quota", run(queue="lent", pool="other"))
    assert (word, text) == ("fail", has("ClusterQueue lent machines pods"))
    for each in lent[1]["spec"]["resourceGroups"][0]["flavors"][0]["resources"]:
        each["borrowingLimit"] = "8"
    apply(cluster, *lent)
    ((word, text, _),) = found(cluster, "queue-quota", run(queue="lent"))
    assert (word, text) == ("fail", has("32 nvidia.com/gpu lent 16 nvidia.com/gpu"))


@engines
def test_a_quota_that_others_use(cluster: Cluster) -> None:
    other = manifests.jobset("other", 2, namespace=SPACE, queue="ward", pool="ward", topology=True)
    apply(cluster, other)
    try:
        wait_for(lambda: status(cluster, "machines-free") == ["warn"], what="that it runs", timeout=180)
        assert found(cluster, "queue-quota") == [
            (
                "warn",
                has("16 nvidia.com/gpu ward 32 nvidia.com/gpu"),
                has("kubectl get workloads --all-namespaces"),
            )
        ]
        assert found(cluster, "machines-free")[0][1] == (has("room 2 4 pods 8 nvidia.com/gpu 4 pods"))
    finally:
        cluster.delete(JOBSET, "other", SPACE, foreground=True)
    wait_for(lambda: status(cluster, "machines-free") == ["pass"], what="that they are free", timeout=180)


@engines
def test_the_releases_own_pods_make_room(cluster: Cluster) -> None:
    apply(cluster, run())
    try:
        wait_for(lambda: len(placed(cluster)) == 4, what="that it runs", timeout=180)
        assert status(cluster, "machines-free") == ["pass"]
        assert status(cluster, "queue-quota") == ["pass"]
        assert found(cluster, "admission")[0][1] == has("JobSet visit effect")
    finally:
        cluster.delete(JOBSET, "visit", SPACE, foreground=True)
    wait_for(lambda: not placed(cluster), what="that it is gone", timeout=180)


@engines
def test_a_toleration_that_kueue_would_add(cluster: Cluster) -> None:
    changed = run()
    pod_spec(changed)["tolerations"][0].update(operator="Exists")
    del pod_spec(changed)["tolerations"][0]["value"]
    text = "flavor ward adds a toleration of nvidia.com/gpu to 4 pods with 8 nvidia.com/gpu"
    assert found(cluster, "queue-tolerations", changed) == [
        (
            "warn",
            f"{text}: upgrades of the running job will conflict",
            has("tolerations ResourceFlavor ward"),
        )
    ]
    assert status(cluster, "queue-tolerations") == ["pass"]


@engines
def test_a_topology_that_machines_or_queue_do_not_have(cluster: Cluster) -> None:
    plain = manifests.queue("flat", 32, SPACE, topology=False)
    plain[0]["spec"]["nodeLabels"] = {"pool": "ward"}
    racks = manifests.queue("racks", 32, SPACE)
    racks[0]["spec"]["levels"] = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    racks[1]["spec"]["nodeLabels"] = {"pool": "ward"}
    apply(cluster, *plain, *racks)
    assert found(cluster, "queue-topology", run(queue="flat"))[0][:2] == ("fail", has("flat topology"))
    assert found(cluster, "queue-topology", run(queue="racks")) == [
        (
            "fail",
            has("4 4 machines rack topology racks ward-0"),
            has("rack topology setup.topologyLevels"),
        )
    ]
    wanted = run(queue="racks")
    template = wanted["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template["metadata"]["annotations"] = {"kueue.x-k8s.io/podset-required-topology": "room"}
    assert ("fail", "topology racks has no level room") in [row[:2] for row in found(cluster, "queue-topology", wanted)]
    for number in range(4):
        cluster.patch(NODE, node(number), {"metadata": {"labels": {"rack": "a"}}})
    assert found(cluster, "queue-topology", run(queue="racks")) == [
        ("pass", has("4 machines 2 labels topology racks"), "")
    ]


# -- Volcano


@engines
def test_a_volcano_queue(cluster: Cluster) -> None:
    def gang(queue: str) -> Object:
        return manifests.volcano_job("visit", 4, namespace=SPACE, queue=queue, pool="ward")

    name = "volcano-queue"
    assert found(cluster, name, gang("closed"))[0][:2] == ("fail", has("Volcano closed"))
    cluster.apply([manifests.volcano_queue("closed", 16)])
    wait_for(lambda: "asks" in found(cluster, name, gang("closed"))[0][1], what="the open queue", timeout=180)
    assert found(cluster, name, gang("closed")) == [
        (
            "fail",
            has("32 nvidia.com/gpu 16 Volcano closed"),
            "kubectl edit queues.scheduling.volcano.sh closed: raise capability, or use fewer nodes",
        )
    ]
    cluster.patch(VOLCANO_QUEUE, "closed", {"spec": {"capability": {"nvidia.com/gpu": "32"}}})
    assert found(cluster, name, gang("closed")) == [("pass", has("closed open"), "")]
    uid = (cluster.get(VOLCANO_QUEUE, "closed") or {})["metadata"]["uid"]
    about = {"apiVersion": VOLCANO_QUEUE.api_version, "kind": "Queue", "name": "closed", "uid": uid, "controller": True}
    metadata = {"name": "close", "ownerReferences": [about]}
    apply(
        cluster,
        {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": metadata,
            "action": "CloseQueue",
            "target": about,
        },
    )
    wait_for(lambda: status(cluster, name, gang("closed")) == ["fail"], what="that it is closed", timeout=180)
    ((_, text, fix),) = found(cluster, name, gang("closed"))
    assert (text, fix) == ("Volcano queue closed is Closed", has("--action open --name closed"))
    cluster.delete(VOLCANO_QUEUE, "closed")


# -- machines


@engines
def test_machines_that_are_missing_or_labelled_otherwise(cluster: Cluster) -> None:
    add = "lower nodes or run.spares, or correct nodeSelector or machineType"
    assert found(cluster, "machines", run(pool="nowhere")) == [
        ("fail", has("0 4 machines 4 pods 8 nvidia.com/gpu pool=nowhere"), f"add 4 machines, {add}")
    ]
    larger = manifests.jobset("visit", 6, namespace=SPACE, pool="ward")
    assert found(cluster, "machines", larger) == [
        ("fail", has("4 6 machines 6 pods 8 nvidia.com/gpu pool=ward"), f"add 2 machines, {add}")
    ]
    both = run()
    pod_spec(both)["nodeSelector"]["gpu-model"] = "h100"
    assert found(cluster, "machines", both)[0][1] == (
        has("0 4 machines 4 pods 8 nvidia.com/gpu pool=ward,gpu-model=h100 gpu-model=h100")
    )
    for number in range(4):
        cluster.patch(NODE, node(number), {"metadata": {"labels": {"gpu-model": "h100"}}})
    assert status(cluster, "machines", both) == ["pass"]


@engines
def test_missing_machines_that_an_autoscaler_adds_are_only_a_warning(cluster: Cluster) -> None:
    metadata = {"name": "cluster-autoscaler-status", "namespace": "kube-system"}
    sign = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    cluster.apply([sign])
    ((word, _, fix),) = found(cluster, "machines", run(pool="nowhere"))
    cluster.delete_object(sign)
    assert (word, fix) == ("warn", "wait for the cluster's autoscaler, which has to add them")


@engines
def test_a_cordoned_machine(cluster: Cluster) -> None:
    cluster.patch(NODE, node(1), {"spec": {"unschedulable": True}})
    try:
        assert found(cluster, "machines") == [
            (
                "fail",
                has("3 4 machines 4 pods 8 nvidia.com/gpu usable ward-1 cordoned"),
                "kubectl uncordon ward-1",
            )
        ]
        assert status(cluster, "machine-taints") == ["pass"]
    finally:
        cluster.patch(NODE, node(1), {"spec": {"unschedulable": None}})
    assert status(cluster, "machines") == ["pass"]


@engines
def test_a_taint_that_the_pods_do_not_tolerate(cluster: Cluster) -> None:
    own = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    taint = {"key": "team", "value": "other", "effect": "NoSchedule"}
    soft = {"key": "busy", "effect": "PreferNoSchedule"}
    cluster.patch(NODE, node(2), {"spec": {"taints": [own, taint, soft]}})
    try:
        assert found(cluster, "machine-taints") == [
            (
                "fail",
                has("4 pods 8 nvidia.com/gpu 3 4 machines team=other:NoSchedule 1"),
                has("tolerations kubectl taint nodes --all team=other:NoSchedule-"),
            )
        ]
    finally:
        cluster.patch(NODE, node(2), {"spec": {"taints": [own]}})
    assert status(cluster, "machine-taints") == ["pass"]


@engines
def test_machines_that_offer_too_little(cluster: Cluster) -> None:
    cluster.patch(NODE, node(3), {"status": {"allocatable": {"nvidia.com/gpu": "7"}}}, subresource="status")
    text = "3 of 4 machines have room for one of 4 pods with 8 nvidia.com/gpu"
    try:
        assert found(cluster, "machine-capacity") == [
            (
                "fail",
                has(f"{text} ward-3 7 nvidia.com/gpu 8"),
                "kubectl describe node ward-3, and check its device plugins",
            )
        ]
        rich = run()
        for container in pod_spec(rich)["containers"]:
            container["resources"]["limits"]["vpc.amazonaws.com/efa"] = "32"
        assert "offers 0 vpc.amazonaws.com/efa, a pod asks for 32" in found(cluster, "machine-capacity", rich)[0][1]
    finally:
        cluster.patch(NODE, node(3), {"status": {"allocatable": {"nvidia.com/gpu": "8"}}}, subresource="status")
    assert status(cluster, "machine-capacity") == ["pass"]


@engines
def test_pods_without_gpus_need_room_too(cluster: Cluster) -> None:
    small = manifests.job("visit", 40, gpus=0, pool="ward", namespace=SPACE)
    assert status(cluster, "machines", small) == ["pass"]

    def offer(cpu: str) -> None:
        for number in (1, 2, 3):
            cluster.patch(NODE, node(number), {"status": {"allocatable": {"cpu": cpu}}}, subresource="status")

    offer("8")
    text = "4 machines together have room for 29 of 40 pods"
    expected = [("fail", text, "add machines, or ask for fewer or smaller pods")]
    assert found(cluster, "machine-capacity", small) == expected
    offer("208")
    assert found(cluster, "machine-capacity", small) == []


# -- storage and what else the pods name


@engines
def test_claims(cluster: Cluster) -> None:
    with_claim = run()
    pod_spec(with_claim)["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    setup = "install the setup chart: helm install setup charts/TARGET-setup --namespace doctor"
    assert found(cluster, "claims", with_claim) == [
        (
            "fail",
            "no claim data in namespace doctor",
            has(f"{setup} setup.claims.data storage"),
        )
    ]
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Ti"}}}
    assert found(cluster, "claims", with_claim, claim) == [], "the release makes it itself"

    def state(modes: str, storage: str) -> tuple[str, str]:
        cluster.delete(CLAIM, "data", SPACE)
        wait_for(lambda: cluster.get(CLAIM, "data", SPACE) is None, what="its end", timeout=180)
        apply(cluster, {**claim, "spec": {**spec, "accessModes": [modes], "storageClassName": storage}})
        return found(cluster, "claims", with_claim)[0][:2]

    assert state("ReadWriteOnce", "none") == ("fail", has("ReadWriteOnce 4"))
    assert state("ReadWriteMany", "none") == ("fail", has("Pending storage"))
    kind: Object = {"apiVersion": STORAGE_CLASS.api_version, "kind": "StorageClass"}
    # the simulated storage makes no volume for a driver whose name cannot be one
    late = {**kind, "provisioner": "example.com/none", "volumeBindingMode": "WaitForFirstConsumer"}
    apply(cluster, {**late, "metadata": {"name": "doctor-late"}})
    apply(cluster, {**late, "volumeBindingMode": "Immediate", "metadata": {"name": "doctor-never"}})
    apply(cluster, {**kind, "provisioner": "now.example.com", "metadata": {"name": "doctor-now"}})
    slow = "claim data is Pending: storage class doctor-never has not made its volume yet"
    assert state("ReadWriteMany", "doctor-never") == ("warn", slow)
    assert state("ReadWriteMany", "") == ("fail", has("Pending volume"))
    assert state("ReadWriteMany", "doctor-late") == ("pass", has("volume first"))
    state("ReadWriteMany", "doctor-now")
    wait_for(lambda: status(cluster, "claims", with_claim) == ["pass"], what="its volume", timeout=180)
    assert found(cluster, "claims", with_claim) == [("pass", "claim data is bound", "")]


@engines
def test_secrets_and_config_maps(cluster: Cluster) -> None:
    secret = run()
    container = pod_spec(secret)["containers"][0]
    container["env"].append({"name": "HF", "valueFrom": {"secretKeyRef": {"name": "hugging", "key": "token"}}})
    container["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    pod_spec(secret)["imagePullSecrets"] = [{"name": "ngc"}]
    make = "kubectl --namespace doctor create "
    assert found(cluster, "secrets", secret) == [
        (
            "fail",
            "no secret hugging in namespace doctor",
            f"{make}secret generic hugging --from-literal=token=...",
        )
    ]
    assert found(cluster, "pull-secrets", secret)[0] == (
        "fail",
        "no image pull secret ngc in namespace doctor",
        f"{make}secret docker-registry ngc --docker-server=... --docker-username=... --docker-password=...",
    )
    assert found(cluster, "config-maps", secret)[0][:2] == (
        "fail",
        has("ConfigMap settings"),
    )
    body: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hugging"}, "stringData": {"other": "x"}}
    apply(cluster, body, {**body, "metadata": {"name": "ngc"}})
    apply(cluster, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}})
    assert found(cluster, "secrets", secret)[0][:2] == ("fail", has("hugging key token"))
    apply(cluster, {**body, "stringData": {"token": "x"}})
    for name in ("secrets", "pull-secrets", "config-maps"):
        assert status(cluster, name, secret) == ["pass"]


@engines
def test_service_account_and_priorities(cluster: Cluster) -> None:
    item = run(account="trainer")
    item["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "urgent"
    assert found(cluster, "service-account", item) == [
        (
            "fail",
            "no service account trainer in namespace doctor",
            "kubectl --namespace doctor create serviceaccount trainer",
        )
    ]
    assert found(cluster, "priority-classes", item)[0][:2] == ("fail", has("WorkloadPriorityClass urgent"))
    apply(cluster, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "trainer"}})
    kind = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "urgent"}}
    apply(cluster, {**kind, "value": 10})
    assert status(cluster, "service-account", item) == status(cluster, "priority-classes", item) == ["pass"]


@engines
def test_a_priority_class_of_the_pods_that_is_missing_is_one_failure(cluster: Cluster) -> None:
    item = run()
    pod_spec(item)["priorityClassName"] = "boreal"
    assert found(cluster, "priority-classes", item)[0][:2] == ("fail", has("no PriorityClass boreal"))
    assert found(cluster, "pod-admission", item) == []


@engines
def test_pods_that_are_not_valid_are_no_matter_of_the_namespaces_limits(cluster: Cluster) -> None:
    item = run()
    pod_spec(item)["containers"][0]["resources"] = {"limits": {"hugepages-2Mi": "4Gi"}}
    ((_, text, fix),) = found(cluster, "pod-admission", item)
    assert "HugePages require cpu or memory" in text
    assert "correct the value" in fix
    assert "limitrange" not in fix


@engines
def test_the_runtime_class_of_the_pods(cluster: Cluster) -> None:
    item = run()
    pod_spec(item)["runtimeClassName"] = "nvidia"
    assert found(cluster, "runtime-classes", item)[0][:2] == ("fail", has("no RuntimeClass nvidia"))
    assert found(cluster, "pod-admission", item) == []
    made = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "runc"}
    cluster.apply([made])
    assert status(cluster, "runtime-classes", item) == ["pass"]
    cluster.delete_object(made)


@engines
def test_the_secret_of_a_driver(cluster: Cluster) -> None:
    item = run()
    source = {"driver": "fs.csi.example.com", "nodePublishSecretRef": {"name": "keys-of-the-driver"}}
    pod_spec(item)["volumes"] = [{"name": "data", "csi": source}]
    assert found(cluster, "secrets", item)[0][:2] == ("fail", has("no secret keys-of-the-driver"))
    apply(cluster, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys-of-the-driver"}})
    assert status(cluster, "secrets", item) == ["pass"]


def csi_driver(*modes: str) -> Object:
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "fs.csi.example.com"}}
    return {**head, "spec": {"attachRequired": False, "volumeLifecycleModes": list(modes)}}


@engines
def test_the_driver_of_a_volume_of_the_pods(cluster: Cluster) -> None:
    item = run()
    pod_spec(item)["volumes"] = [{"name": "data", "csi": {"driver": "fs.csi.example.com"}}]
    assert found(cluster, "storage-drivers", item)[0][:2] == ("fail", has("no CSIDriver fs.csi.example.com"))
    for modes, expected in ((["Persistent"], "fail"), (["Ephemeral", "Persistent"], "pass")):
        cluster.apply([csi_driver(*modes)])
        assert status(cluster, "storage-drivers", item) == [expected]
        cluster.delete_object(csi_driver())


@engines
@pytest.mark.parametrize("bound", [True, False])
def test_the_driver_behind_a_claim(cluster: Cluster, bound: bool) -> None:
    """Of its volume, or of the class of the pods' own; a machine's list of drivers counts as well as a CSIDriver."""
    meta = {"metadata": {"name": "driven"}}
    storage = {"accessModes": ["ReadWriteMany"], "storageClassName": "driven"}
    source = {"capacity": {"storage": "1Gi"}, "csi": {"driver": "fs.csi.example.com", "volumeHandle": "one"}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", **meta, "spec": {**storage, **source}}
    made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **meta, "provisioner": "fs.csi.example.com"}
    spec = {**storage, "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **meta, "spec": {**spec, "volumeName": "driven"}}
    item = run()
    if bound:
        cluster.apply([volume])
        apply(cluster, claim)
        pod_spec(item)["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "driven"}}]
    else:
        cluster.apply([made])
        pod_spec(item)["volumes"] = [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]
    assert found(cluster, "storage-drivers", item)[0][:2] == ("warn", has("fs.csi.example.com"))
    node = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "ward-0"}}
    listed = {**node, "spec": {"drivers": [{"name": "fs.csi.example.com", "nodeID": "ward-0", "topologyKeys": []}]}}
    for proof in (csi_driver("Persistent"), listed):
        cluster.apply([proof])
        assert status(cluster, "storage-drivers", item) == ["pass"]
        cluster.delete_object(proof)
    for each in [{**claim, "metadata": {"name": "driven", "namespace": SPACE}}, volume] if bound else [made]:
        cluster.delete_object(each)


@engines
def test_networks_of_gke(cluster: Cluster) -> None:
    item = run()
    template = item["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    listed = [{"interfaceName": "eth0", "network": "default"}, {"interfaceName": "eth1", "network": "doctor-net"}]
    template["metadata"]["annotations"] = {"networking.gke.io/interfaces": json.dumps(listed)}
    kind = {"apiVersion": "networking.gke.io/v1", "metadata": {"name": "doctor-net"}}
    parameters = {"group": "networking.gke.io", "kind": "GKENetworkParamSet", "name": "doctor-net"}
    reference = {"type": "Device", "parametersRef": parameters}
    assert found(cluster, "networks", item)[0][:2] == ("fail", has("network doctor-net"))
    apply(cluster, {**kind, "kind": "Network", "spec": reference})
    assert found(cluster, "networks", item)[0][:2] == ("fail", "network doctor-net has no GKENetworkParamSet")
    apply(cluster, {**kind, "kind": "GKENetworkParamSet", "spec": {"vpc": "v", "vpcSubnet": "s"}})
    assert found(cluster, "networks", item) == [("pass", "1 networks exist", "")]
