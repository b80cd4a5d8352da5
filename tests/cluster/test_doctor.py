"""The doctor on a real control plane: the cluster, the caller, the past, whole targets, and the command."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import manifests
import pytest
import userlib
from answers import answer
from facts import has
from preflight_cluster import HEAD, PLAIN, SPACE, apply, examined, found, opened, pod_spec, run, status
from rendered import GPT3, VALUES, chart, setup_chart, target
from userlib import chartgen

from chartgen.composer.node_pools import node_pool
from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import Values, load_values
from chartgen.helm.yaml import load, require_map
from chartgen.kube import JOBSET, NAMESPACE, SECRET, Cluster, Kind, Object, connect, wait_for
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.releases import helm_release
from chartgen.releases.helm_release import Place
from chartgen.releases.preflight import Diagnosis, examine, examine_cluster

DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
HOOKS = Kind(
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)
MUTATING = Kind(HOOKS.api_version, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False)
engines = pytest.mark.engines
FOREIGN = (
    *("jobs.batch", "mpijobs.kubeflow.org", "pytorchjobs.kubeflow.org", "rayjobs.ray.io"),
    *("trainjobs.trainer.kubeflow.org", "jobs.batch.volcano.sh"),
)


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane) -> Iterator[Cluster]:
    with opened(plane) as ward:
        yield ward


@engines
def test_all_is_well(cluster: Cluster) -> None:
    rows = examined(cluster)
    assert [(each.name, each.text) for each in rows if each.status != "pass"] == []
    assert [each.fix for each in rows if each.fix] == []
    told = {each.name: each.text for each in rows}
    assert told["kubernetes-version"] == has("v1.37.2 1.29.0")
    assert told["api-versions"] == has("JobSet jobset.x-k8s.io/v1alpha2")
    assert told["admission"] == has("JobSet visit effect")
    assert told["queue"] == has("ward 0 ClusterQueue ward")
    assert told["queue-quota"] == has("ward 32 nvidia.com/gpu 32 nvidia.com/gpu")
    assert told["queue-topology"] == has("4 machines 1 labels topology ward")
    assert told["machines"] == has("4 machines Ready 4 4 pods 8 nvidia.com/gpu")
    assert cluster.get(JOBSET, "visit", SPACE) is None


# -- versions and kinds


@engines
def test_a_chart_for_a_newer_kubernetes(cluster: Cluster) -> None:
    newer = Chart("plain", {"Chart.yaml": HEAD.replace("1.29.0", "1.99.0")})
    rows = [each for each in examined(cluster, made=newer) if each.name == "kubernetes-version"]
    assert [(each.status, each.text) for each in rows] == [("fail", has("v1.37.2 plain 1.99.0"))]


@engines
def test_a_helm_that_is_missing(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CHARTGEN_HELM", str(tmp_path / "helm"))
    ((word, text, fix),) = found(cluster, "helm-version")
    assert (word, fix) == ("fail", "chartgen engines get helm")
    assert "is not an executable file" in text


@engines
def test_kinds_that_the_cluster_does_not_serve(cluster: Cluster) -> None:
    train = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "x"}}
    assert found(cluster, "api-versions", train) == [
        ("fail", has("cluster LeaderWorkerSet leaderworkerset.x-k8s.io/v1"), "install the CRD of LeaderWorkerSet")
    ]
    older = {"apiVersion": "kueue.x-k8s.io/v1alpha9", "kind": "LocalQueue", "metadata": {"name": "x"}}
    assert found(cluster, "api-versions", older)[0][1:] == (
        has("cluster LocalQueue kueue.x-k8s.io/v1alpha9"),
        has("setup.kueueVersion=v1beta2"),
    )


# -- controllers


def deployment(name: str, image: str, pool: str) -> Object:
    labels = {"app": name}
    spec = {"containers": [{"name": "manager", "image": image}], "nodeSelector": {"pool": pool}}
    spec["tolerations"] = [{"operator": "Exists"}]
    body = {"replicas": 1, "selector": {"matchLabels": labels}}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {**body, "template": template},
    }


@engines
def test_a_controller_whose_deployment_is_not_ready(cluster: Cluster) -> None:
    name, image, space = "jobset-controller-manager", "registry.k8s.io/jobset/jobset:v0.12.0", "jobset-system"
    assert found(cluster, "controllers")[0][:2] == ("pass", has("JobSet outside namespace jobset-system webhooks"))
    cluster.apply([deployment(name, image, "nowhere")], namespace=space)
    try:
        assert found(cluster, "controllers")[0] == (
            "fail",
            has(f"JobSet Deployment {name} 0 1 pods"),
            f"kubectl --namespace {space} describe deployment {name}",
        )
        cluster.apply([deployment(name, image, "ward")], namespace=space)
        wait_for(lambda: status(cluster, "controllers") == ["pass", "pass"], what="that it is ready", timeout=180)
        assert found(cluster, "controllers")[0][1] == "JobSet v0.12.0 runs"
    finally:
        cluster.delete(DEPLOYMENT, name, space, foreground=True)


@engines
def test_a_webhook_without_a_service(cluster: Cluster) -> None:
    service = {"namespace": "jobset-system", "name": "jobset-webhook-service", "path": "/validate"}
    rule = {"apiGroups": ["jobset.x-k8s.io"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["jobsets"]}
    hook = {"name": "deaf.example.com", "clientConfig": {"service": service}, "rules": [rule], "sideEffects": "None"}
    only = {"matchLabels": {"kubernetes.io/metadata.name": SPACE}}
    hook |= {"admissionReviewVersions": ["v1"], "namespaceSelector": only}
    cluster.apply(
        [{"apiVersion": HOOKS.api_version, "kind": HOOKS.name, "metadata": {"name": "deaf"}, "webhooks": [hook]}]
    )
    try:
        wait_for(lambda: status(cluster, "admission") == ["fail"], what="that the webhook counts", timeout=180)
        ((_, text, fix),) = found(cluster, "admission")
    finally:
        cluster.delete(HOOKS, "deaf")
    assert 'JobSet visit: Internal error occurred: failed calling webhook "deaf.example.com"' in text
    assert 'service "jobset-webhook-service" not found' in text
    assert fix == "kubectl --namespace jobset-system get pods,endpointslices"
    wait_for(lambda: status(cluster, "admission") == ["pass"], what="that it is gone", timeout=180)


@engines
def test_a_run_that_the_api_server_refuses(cluster: Cluster) -> None:
    wrong = run()
    wrong["metadata"]["name"] = "a" * 63
    ((word, text, fix),) = found(cluster, "admission", wrong)
    assert (word, fix) == ("fail", "change the values that the message names")
    assert text.startswith(f"JobSet {'a' * 63} is refused: admission webhook ")
    assert "JobSet name is too long" in text


@engines
def test_a_kind_that_kueue_does_not_hold_back(cluster: Cluster) -> None:
    """Kueue without its integration for a kind has no webhook for it."""
    name = "kueue-mutating-webhook-configuration"
    whole = cluster.get(MUTATING, name) or {}
    jobset = [hook for hook in whole["webhooks"] if any("jobsets" in rule["resources"] for rule in hook["rules"])]
    others = [hook for hook in whole["webhooks"] if hook not in jobset]
    cluster.patch(MUTATING, name, {"webhooks": others})
    try:
        step = "add jobset.x-k8s.io/jobset to integrations.frameworks in ConfigMap kueue-manager-config"
        wait_for(lambda: status(cluster, "queue-integration") == ["fail"], what="that it is off", timeout=180)
        assert found(cluster, "queue-integration") == [
            (
                "fail",
                has("Kueue JobSet ward"),
                f"{step} of kueue-system, and restart Kueue",
            )
        ]
    finally:
        cluster.patch(MUTATING, name, {"webhooks": whole["webhooks"]})
    wait_for(lambda: status(cluster, "queue-integration") == ["pass"], what="that it is on", timeout=180)
    assert found(cluster, "queue-integration", run(queue="")) == []


@contextmanager
def kueue_configured(cluster: Cluster, text: str) -> Iterator[None]:
    """Kueue's own configuration, where its installers put it; rehearsals have none there."""
    metadata = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    cluster.apply([{**item, "data": {"controller_manager_config.yaml": text}}])
    try:
        yield
    finally:
        cluster.delete_object(item)


@engines
def test_of_a_run_that_exists_kueues_configuration_tells(cluster: Cluster) -> None:
    cluster.apply([run()])
    try:
        ((word, text, fix),) = found(cluster, "queue-integration")
        assert (word, text.partition(" ")[0]) == ("warn", "not")
        assert fix.endswith("get configmap kueue-manager-config --output yaml")
        for listed, expected in (("[batch/job, jobset.x-k8s.io/jobset]", "pass"), ("[pod]", "fail"), ("[]", "fail")):
            with kueue_configured(cluster, f"integrations:\n  frameworks: {listed}\n"):
                assert status(cluster, "queue-integration") == [expected]
    finally:
        cluster.delete_object(run())


CLASS = "compute-domain-default-channel.nvidia.com"
MAPPED = """\
resources:
  deviceClassMappings:
  - name: RESOURCE
    deviceClassNames: [nic.example.com, compute-domain-default-channel.nvidia.com]
"""


@engines
def test_device_classes_that_kueue_does_not_map(cluster: Cluster) -> None:
    claiming = run()
    pod_spec(claiming)["resourceClaims"] = [{"name": "channel", "resourceClaimTemplateName": "visit-channel"}]
    domain = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "visit"},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "visit-channel"}}},
    }

    def told(*items: Object) -> list[tuple[str, str, str]]:
        return found(cluster, "queue-device-classes", *items)

    assert told() == []
    # nobody can see the template, or Kueue's configuration
    assert [row[0] for row in told(claiming)] == ["warn"]
    assert [row[0] for row in told(claiming, domain)] == ["warn"]
    with kueue_configured(cluster, "resources: {}\n"):
        ((word, text, fix),) = told(claiming, domain)
        assert (word, CLASS in text, CLASS in fix) == ("fail", True, True)
    with kueue_configured(cluster, MAPPED.replace("RESOURCE", "example.com/channel")):
        ((word, text, fix),) = told(claiming, domain)
        assert (word, "example.com/channel" in text, "setup.quota.resources" in fix) == ("fail", True, True)
    with kueue_configured(cluster, MAPPED.replace("RESOURCE", "nvidia.com/gpu")):
        assert [row[0] for row in told(claiming, domain)] == ["pass"]
        template: Object = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "visit-channel", "namespace": SPACE},
            "spec": {"spec": {"devices": {"requests": [{"name": "a"}]}}},
        }
        (request,) = template["spec"]["spec"]["devices"]["requests"]
        for exactly, said in (
            ({"deviceClassName": "x.example.com"}, "device class x.example.com"),
            ({"deviceClassName": "nic.example.com", "allocationMode": "All"}, "allocationMode All"),
            ({"deviceClassName": "nic.example.com", "adminAccess": True}, "adminAccess"),
            (None, "firstAvailable"),
        ):
            request.pop("exactly", None)
            either = {"firstAvailable": [{"name": "b", "deviceClassName": "nic.example.com"}]}
            request.update({"exactly": exactly} if exactly else either)
            ((word, text, _),) = told(claiming, template)
            assert (word, said in text) == ("fail", True)
        cluster.apply([template])  # that of somebody else, which the cluster has
        try:
            ((word, text, _),) = told(claiming)
            assert (word, "firstAvailable" in text) == ("fail", True)
        finally:
            cluster.delete_object(template)


# -- what the namespace and the caller may do


@engines
def test_a_namespace_that_does_not_exist(cluster: Cluster) -> None:
    assert found(cluster, "namespace", space="nowhere") == [
        ("fail", "namespace nowhere does not exist", "kubectl create namespace nowhere, or name another with -n")
    ]


@engines
def test_pod_security(cluster: Cluster) -> None:
    item = run()
    pod_spec(item)["hostNetwork"] = True
    pod_spec(item)["containers"][0]["securityContext"] = {"privileged": True, "capabilities": {"add": ["IPC_LOCK"]}}
    asked, label = "capabilities IPC_LOCK, hostNetwork, privileged containers", "pod-security.kubernetes.io/enforce"
    cluster.patch(NAMESPACE, SPACE, {"metadata": {"labels": {label: "baseline"}}})
    try:
        assert found(cluster, "pod-security", item) == [
            (
                "fail",
                has(f"doctor baseline pods privileged {asked}"),
                f"kubectl label namespace doctor {label}=privileged --overwrite",
            )
        ]
        assert found(cluster, "pod-admission", item) == [], "said once"
        assert found(cluster, "pod-security")[0][:2] == ("pass", has("doctor baseline"))
        cluster.patch(NAMESPACE, SPACE, {"metadata": {"labels": {label: "restricted"}}})
        ((_, text, fix),) = found(cluster, "pod-admission")
        assert 'violates PodSecurity "restricted:latest"' in text
        assert "limitrange" not in fix
    finally:
        cluster.patch(NAMESPACE, SPACE, {"metadata": {"labels": {label: None}}})
    assert status(cluster, "pod-security", item) == status(cluster, "pod-admission", item) == ["pass"]


@engines
def test_limits_of_the_namespace(cluster: Cluster) -> None:
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}}
    apply(cluster, {**limits, "spec": {"limits": [{"type": "Container", "max": {"cpu": "4"}}]}})
    apply(cluster, {**quota, "spec": {"hard": {"requests.nvidia.com/gpu": "16", "pods": "100"}}})
    try:
        wait_for(lambda: status(cluster, "pod-admission") == ["fail"], what="that the limit counts", timeout=180)
        ((_, text, fix),) = found(cluster, "pod-admission")
        assert "maximum cpu usage per Container is 4, but limit is 8" in text
        assert fix == "kubectl --namespace doctor describe limitrange,resourcequota"
        assert found(cluster, "namespace-quota") == [
            (
                "fail",
                has("pods 32 16 requests.nvidia.com/gpu ResourceQuota few doctor"),
                "kubectl --namespace doctor edit resourcequota few, or use fewer nodes",
            )
        ]
        apply(cluster, {**quota, "spec": {"hard": {"requests.nvidia.com/gpu": "64", "pods": "100"}}})
        assert found(cluster, "namespace-quota") == [("pass", has("ResourceQuota few room pods"), "")]
    finally:
        cluster.delete_object(limits, namespace=SPACE)
        cluster.delete_object(quota, namespace=SPACE)
    wait_for(lambda: status(cluster, "pod-admission") == ["pass"], what="that they are gone", timeout=180)


@pytest.fixture
def guest(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """A caller who may only look at JobSets in the namespace: a service account with its token."""
    apply(cluster, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "guest"}})
    notes = {"kubernetes.io/service-account.name": "guest"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "guest", "annotations": notes}}
    apply(cluster, {**secret, "type": "kubernetes.io/service-account-token"})
    rules = [{"apiGroups": ["jobset.x-k8s.io"], "resources": ["jobsets"], "verbs": ["get", "list", "create"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "guest"}, "rules": rules}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "guest"}
    subject = {"kind": "ServiceAccount", "name": "guest", "namespace": SPACE}
    binding = {key: value for key, value in role.items() if key != "rules"} | {"kind": "RoleBinding"}
    apply(cluster, role, {**binding, "roleRef": reference, "subjects": [subject]})

    def token() -> str:
        data = (cluster.get(SECRET, "guest", SPACE) or {}).get("data", {})
        return base64.b64decode(data.get("token", "")).decode()

    config: Any = require_map(load(plane.kubeconfig.read_text(), "kubeconfig"), "kubeconfig")
    config["users"][0]["user"] = {"token": wait_for(token, what="its token", timeout=180)}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    with connect(kubeconfig=path) as connection:
        yield connection


@engines
def test_a_caller_without_permissions(guest: Cluster) -> None:
    rows = [(each.name, each.status, each.text) for each in examined(guest)]
    place = "in namespace doctor"
    assert [row for row in rows if row[0] == "permissions"] == [
        ("permissions", "fail", has(f"permission get list create update delete secrets {place}")),
        ("permissions", "fail", has(f"permission get create patch delete leases.coordination.k8s.io {place}")),
        ("permissions", "fail", has(f"permission patch delete jobsets.jobset.x-k8s.io {place}")),
        # what may run under the release's name, though it is no JobSet
        *(("permissions", "fail", has(f"permission list {name} {place}")) for name in FOREIGN),
        ("permissions", "warn", has(f"permission list workloads.kueue.x-k8s.io {place}")),
        ("permissions", "warn", has(f"permission get list watch pods {place}")),
        ("permissions", "warn", has(f"permission get pods/log {place}")),
        ("permissions", "warn", has(f"permission list events {place}")),
    ]
    unread = {name: text for name, status, text in rows if text.startswith("not checked") and status == "warn"}
    assert unread["machines"] == has("permission list nodes")
    assert unread["queue"] == has(f"permission get localqueues.kueue.x-k8s.io {place}")
    assert unread["namespace"] == has("permission get namespaces")
    assert unread["pod-admission"] == has("permission create pods")
    assert unread["controllers"] == has("Kueue permission list deployments")
    assert ("admission", "pass", "JobSet visit is taken (tried without effect)") in rows
    assert {name for name, status, _ in rows if status == "fail"} == {"permissions"}
    flavor = manifests.queue("ward", 32, SPACE)[1]
    ((word, text, fix),) = found(guest, "permissions", flavor)[2:3]
    assert (word, text) == ("fail", has("permission get list create patch delete resourceflavors.kueue.x-k8s.io"))
    name = "resourceflavors.kueue.x-k8s.io"
    assert fix == has(f"create chartgen-resourceflavors --verb=get,list,create,patch,delete --resource={name}")


# -- what earlier commands left


@engines
def test_what_helm_left_behind(plane: ControlPlane, cluster: Cluster) -> None:
    """An upgrade that is refused, then helm uninstall: the old run lives on (docs/explanation, releases)."""
    place = Place(SPACE, plane.kubeconfig)
    template = "templates/run.yaml"
    kinds = [manifests.jobset(f"{{{{ .Release.Name }}}}-{name}", 1, namespace=SPACE, pool="ward") for name in "ab"]
    for item in kinds:
        item["metadata"]["labels"] = {"app.kubernetes.io/instance": "{{ .Release.Name }}"}
    refused = json.dumps({**kinds[1], "metadata": {**kinds[1]["metadata"], "name": "x" * 63}})
    old, new = (Chart("plain", {"Chart.yaml": HEAD, template: text}) for text in (json.dumps(kinds[0]), refused))
    assert found(cluster, "orphans") == found(cluster, "stuck-release") == []
    helm_release.install(old, "visit", {}, place)
    assert found(cluster, "orphans") == []
    with pytest.raises(ChartgenError, match="name is too long"):
        helm_release.upgrade(new, "visit", {}, place)
    cure = "chartgen upgrade replaces it, chartgen uninstall visit removes it"
    assert found(cluster, "orphans") == [("warn", has("JobSet visit-a 1 machines"), cure)]
    helm_release.uninstall("visit", place)
    if cluster.get(JOBSET, "visit-a", SPACE):
        cure = "kubectl --namespace doctor delete jobsets.jobset.x-k8s.io visit-a --cascade=foreground"
        assert found(cluster, "orphans") == [("warn", has("JobSet visit-a Helm machines"), cure)]
        cluster.delete(JOBSET, "visit-a", SPACE, foreground=True)
    wait_for(lambda: not found(cluster, "orphans"), what="that it is gone", timeout=180)


def saving(name: str, volume: Object, directory: str = "/outputs/same/checkpoints") -> Object:
    item = run()
    item["metadata"]["name"] = name
    item["spec"]["suspend"] = True
    item["metadata"]["labels"].pop("kueue.x-k8s.io/queue-name", None)
    pod = pod_spec(item)
    pod["volumes"] = [{"name": "outputs", **volume}]
    pod["containers"][0]["env"] = [{"name": "CHECKPOINT_DIRECTORY", "value": directory}]
    pod["containers"][0]["volumeMounts"] = [{"name": "outputs", "mountPath": "/outputs"}]
    return item


NFS = {"nfs": {"server": "192.0.2.1", "path": "/"}}
CLAIMED = {"persistentVolumeClaim": {"claimName": "training"}}


@engines
@pytest.mark.parametrize(
    ("volume", "space", "met"),
    [(NFS, SPACE, 1), (NFS, "kube-public", 1), (CLAIMED, SPACE, 1), (CLAIMED, "kube-public", 0)],
)
def test_another_release_that_saves_to_the_same_directory(
    plane: ControlPlane, cluster: Cluster, volume: Object, space: str, met: int
) -> None:
    place = Place(space, plane.kubeconfig)
    item = saving("other", volume)
    item["metadata"]["namespace"] = space
    helm_release.install(
        Chart("plain", {"Chart.yaml": HEAD, "templates/run.yaml": json.dumps(item)}), "other", {}, place
    )
    try:
        told = found(cluster, "outputs-of-others", saving("visit", volume))
        assert [status for status, *_ in told] == ["warn"] * met
        assert all(f"release other of namespace {space}" in text for _, text, _ in told)
        assert found(cluster, "outputs-of-others", saving("visit", volume, "/outputs/own/checkpoints")) == []
        assert found(cluster, "outputs-of-others", saving("visit", {"nfs": {"server": "192.0.2.2", "path": "/"}})) == []
        assert found(cluster, "outputs-of-others", saving("visit", {"emptyDir": {}})) == []
        made = examine(cluster, PLAIN, Values({}), [saving("other", volume)], "other", space)
        assert [each for each in made if each.name == "outputs-of-others"] == []
    finally:
        helm_release.uninstall("other", place)
        cluster.delete(JOBSET, "other", space, foreground=True)


@engines
def test_a_record_that_cannot_be_read_leaves_outputs_unchecked(cluster: Cluster) -> None:
    labels = {"owner": "helm", "status": "deployed", "name": "odd", "version": "1"}
    odd = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sh.helm.release.v1.odd.v1", "labels": labels}}
    apply(cluster, {**odd, "stringData": {"release": "no record"}})
    try:
        ((word, text, _),) = found(cluster, "outputs-of-others", saving("visit", NFS))
        assert (word, text.startswith("not checked")) == ("warn", True)
    finally:
        cluster.delete(SECRET, "sh.helm.release.v1.odd.v1", SPACE)


@engines
def test_a_command_that_was_cut_off(plane: ControlPlane, cluster: Cluster) -> None:
    place = Place(SPACE, plane.kubeconfig)
    helm_release.install(Chart("plain", {"Chart.yaml": HEAD}), "visit", {}, place)
    (stored,) = cluster.list(SECRET, namespace=SPACE, labels={"owner": "helm", "name": "visit"})
    kept = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(stored["data"]["release"]))))
    kept["info"] |= {"status": "pending-upgrade", "last_deployed": "2026-01-02T03:04:05Z"}
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(kept).encode()))).decode()
    cluster.patch(SECRET, stored["metadata"]["name"], {"data": {"release": packed}}, namespace=SPACE)
    assert found(cluster, "stuck-release") == [
        (
            "warn",
            has("1 pending-upgrade 2026-01-02 03:04 UTC"),
            "the next chartgen command recovers it, unless another one is still at work",
        )
    ]
    cluster.delete(SECRET, stored["metadata"]["name"], SPACE)


# -- whole targets


@engines
@pytest.mark.parametrize("name", ["gke-a3mega", "oke-h100", "eks-p5"])
def test_a_target_is_well_once_its_setup_chart_is_there(plane: ControlPlane, cluster: Cluster, name: str) -> None:
    space = f"doctor-{name}"
    cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}])
    sets = ["nodes=2", "topology.mode=required"] if name == "gke-a3mega" else ["nodes=2"]
    level = ["topology.level=cloud.google.com/gce-topology-block"] if name == "gke-a3mega" else []
    values = load_values([VALUES / "gpt3-5b.yaml", VALUES / f"site.{name}.example.yaml"], set_values=[*sets, *level])
    place, made, setup = Place(space, plane.kubeconfig), chart(name=name), setup_chart(name)
    names = create_machines(cluster, [node_pool(target(name).default_machine, 2)])

    def rows(composed: Chart) -> list[Diagnosis]:
        found = objects(render(composed, "visit", space, values.data))
        return [each for each in examine(cluster, composed, values, found, "visit", space) if each.status != "pass"]

    for secret in ("ngc", "huggingface"):
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "stringData": {"token": "x"}}
        cluster.apply([body], namespace=space)
    try:
        assert {each.name for each in rows(made)} & {"queue", "volcano-queue", "claims"}
        assert rows(setup) == []
        helm_release.install(setup, "setup", values.data, place)
        wait_for(lambda: not rows(made), what="that all is well", timeout=180)
    finally:
        helm_release.uninstall("setup", place)
        delete_machines(cluster, names)
        cluster.delete(NAMESPACE, space)


@engines
def test_a_machine_type_for_a_newer_kubernetes(plane: ControlPlane) -> None:
    with connect(kubeconfig=plane.kubeconfig) as old:
        old.version = "v1.28.1"
        rows = examine(old, chart(), load_values(GPT3), [], "visit", SPACE)
    text = "machineType: a3-megagpu-8g needs native sidecars, which Kubernetes v1.28.1 does not have"
    assert [(each.status, each.text, each.fix) for each in rows if each.name == "machine-versions"] == [
        ("fail", text, has("cluster version 1.29"))
    ]


# They have no webhooks, and are processes without a Deployment here: only their kinds of objects are in the cluster.
MPI_OPERATOR = "mpi-operator is not installed: no Deployment in mpi-operator, no webhook"
KUBERAY = "kuberay is not installed: no Deployment in default, no webhook"


@engines
def test_a_cluster_without_a_target(cluster: Cluster) -> None:
    rows = examine_cluster(cluster, SPACE)
    assert [each.text for each in rows if each.name == "gpu-machines"] == [has("4 4 machines type usable 32 GPUs")]
    told = [each.text for each in rows if each.name == "controllers"]
    assert [text.split()[0] if " runs" in text else text for text in told] == [
        "JobSet",
        "Kueue",
        "Volcano",
        "training-operator",
        MPI_OPERATOR,
        "trainer",
        KUBERAY,
    ]
    assert {each.status for each in rows if each.text not in {MPI_OPERATOR, KUBERAY}} == {"pass"}


# -- the command


@engines
def test_the_command(plane: ControlPlane, cluster: Cluster) -> None:
    values = [part for file in GPT3 for part in ("-f", file)]
    env = {"KUBECONFIG": str(plane.kubeconfig)}
    ran = chartgen("doctor", "gke-a3mega", "visit", *values, "-n", SPACE, env=env)
    assert ran.exit_code == 1
    lines = ran.stdout.splitlines()
    assert "fail  queue               no queue 'a3-mega' in namespace doctor" in " ".join(lines)
    place = lines.index(next(line for line in lines if line.startswith("fail  queue ")))
    assert (
        lines[place + 1].strip().startswith("fix: install the setup chart: helm install setup charts/gke-a3mega-setup")
    )
    failures = sum(line.startswith("fail") for line in lines)
    assert ran.stderr.strip().endswith(f"{failures} failed")
    ran = chartgen("doctor", "-n", SPACE, "--output", "json", env=env)
    assert ran.exit_code == 0, ran.output
    diagnoses = answer(ran.stdout)["diagnoses"]
    assert {each["status"] for each in diagnoses if each["text"] not in {MPI_OPERATOR, KUBERAY}} == {"pass"}
    assert cluster.list(JOBSET, namespace=SPACE) == []


@engines
@pytest.mark.usefixtures("cluster")
def test_the_release_of_a_target_that_is_not_known_is_not_examined(plane: ControlPlane, tmp_path: Path) -> None:
    userlib.write(tmp_path / "lib", {"targets/box.yaml": userlib.TARGET.replace(", FRAGMENTS", "")})
    userlib.composed(tmp_path / "lib").write(tmp_path / "box")
    asked = ("doctor", tmp_path / "box", "visit", "-n", SPACE)
    env = {"KUBECONFIG": str(plane.kubeconfig)}
    ran = chartgen(*asked, env=env)
    assert (ran.exit_code, ran.stdout) == (3, "")
    assert "target box" in ran.stderr
    ran = chartgen(*asked, "--path", tmp_path / "lib", env=env)
    assert "target box" not in ran.stderr
    assert ran.stdout
