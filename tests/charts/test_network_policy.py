"""Only the pods of a run reach its pods: the rendezvous, ssh servers and Ray take orders from whoever reaches them."""

from __future__ import annotations

from typing import Any

import pytest
from rendered import Objects, chart, one, rendered

from chartgen.helm.manifests import objects, render
from chartgen.kube.manifest_walk import maps

pytestmark = pytest.mark.helm

# Kind -> a target that has it, and what its runs need.
KINDS = {
    "job": ("gke-a3high", ()),
    "jobset": ("gke-a3mega", ()),
    "pytorchjob": ("eks-p5", ()),
    "pytorchjob with etcd": ("eks-p5", ("rendezvous.backend=etcd",)),
    "trainjob": ("gke-a3mega", ()),
    "mpijob": ("eks-p5", ()),
    "volcano-job": ("oke-h100", ("network.mode=sriov",)),
    "rayjob": ("eks-p5", ("launchers.nemo-rl.model=/data/llama",)),
}
DATA = ("launcher=download", "data.source=https://example.com/a", "data.directory=/data/a")


def run(case: str, *sets: str) -> Objects:
    name, own = KINDS[case]
    found = ("nodes=2", *own, *sets)
    return rendered(*found, files=(), workload=case.partition(" ")[0], name=name)


def policies(found: Objects) -> Objects:
    """The run's policy, then that of its etcd."""
    return sorted(
        (each for each in found if each["kind"] == "NetworkPolicy"), key=lambda each: each["metadata"]["name"]
    )


def labels_of_pods(found: Objects) -> list[dict[str, str]]:
    """The labels of every pod that the run has, whatever object makes it."""
    templates = [node for each in found for _, node in maps(each) if "containers" in (node.get("spec") or ())]
    return [each["metadata"]["labels"] for each in templates]


@pytest.mark.threat(18)
def test_every_pod_of_a_run_is_reached_by_its_own_pods_alone() -> None:
    for case in KINDS:
        for sets in ((), DATA) if case != "rayjob" else ((),):
            found = run(case, *sets)
            (policy, *others), seen = policies(found), labels_of_pods(found)
            chosen = {"run": policy["metadata"]["name"]}  # another run has another name
            assert policy["spec"]["podSelector"]["matchLabels"] == chosen, case
            assert any(chosen.items() <= each.items() for each in seen), case
            for each in (policy, *others):
                assert each["spec"]["policyTypes"] == ["Ingress"], case
                assert each["spec"]["ingress"][0] == {"from": [{"podSelector": {"matchLabels": chosen}}]}, case
                assert len(each["spec"]["ingress"]) == (2 if case == "rayjob" else 1), case
            selectors = [each["spec"]["podSelector"]["matchLabels"].items() for each in (policy, *others)]
            assert [each for each in seen if not any(one <= each.items() for one in selectors)] == [], (case, sets)


@pytest.mark.threat(18)
def test_prometheus_reaches_the_port_of_the_metrics_and_nothing_else() -> None:
    for case in KINDS:
        if case == "rayjob":
            continue
        *_, rule = policies(run(case, "run.metricsPort=9401"))[0]["spec"]["ingress"]
        assert rule == {"ports": [{"port": 9401}]}, case
    data = one("NetworkPolicy", run("job", *DATA, "run.metricsPort=9401"))
    assert len(data["spec"]["ingress"]) == 1, "data programs serve no metrics"


@pytest.mark.threat(18)
def test_the_operator_of_ray_reaches_the_dashboard_alone() -> None:
    *_, rule = one("NetworkPolicy", run("rayjob"))["spec"]["ingress"]
    operator = {"matchLabels": {"app.kubernetes.io/component": "kuberay-operator"}}
    assert rule == {"from": [{"podSelector": operator, "namespaceSelector": {}}], "ports": [{"port": 8265}]}
    *_, rule = one("NetworkPolicy", run("rayjob", "ray.operatorNamespace=ray-system"))["spec"]["ingress"]
    assert rule["from"][0]["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "ray-system"}}


@pytest.mark.threat(18)
def test_a_value_turns_it_off_and_the_run_stays_the_same() -> None:
    for case in KINDS:
        off, on = run(case, "run.networkPolicy=false"), run(case)
        assert policies(off) == [], case
        assert off == [item for item in on if item["kind"] != "NetworkPolicy"], case


@pytest.mark.threat(18)
def test_null_in_plain_helm_turns_no_guard_off() -> None:
    """It deletes the default; `check` refuses it."""
    null: dict[str, Any] = {"run": {"networkPolicy": None, "examine": None}, "network": {"transportCheck": None}}
    for target in ("gke-a3mega", "aks-nd"):
        usual, found = (objects(render(chart(None, target), "a", "b", {"nodes": 2, **each})) for each in ({}, null))
        assert found == usual, target


@pytest.mark.threat(18)
def test_pods_in_the_network_of_their_machine_have_none() -> None:
    """They have the machine's addresses, which no selector of pods names: a policy would keep them from Ray's head."""
    for name, sets in (("gke-a3mega", "network.hostNetwork=true"), ("oke-h100", "network.mode=host")):
        assert policies(rendered("nodes=2", sets, files=(), name=name)) == [], name
        assert len(policies(rendered(*DATA, sets, files=(), name=name))) == 1, "its pod has a network of its own"


@pytest.mark.threat(18)
def test_volcano_makes_no_policy_of_its_own() -> None:
    (arguments,) = (item["spec"]["plugins"]["svc"] for item in run("volcano-job") if item["kind"] == "Job")
    assert "--disable-network-policy=true" in arguments
