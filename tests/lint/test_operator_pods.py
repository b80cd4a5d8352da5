"""Pods, Secrets and keys that a release makes as it runs, which no template of it has, beside what nobody makes."""

from __future__ import annotations

from typing import Any

import pytest

from chartgen.kube import Object
from chartgen.linter.references import names_are_in_the_release
from chartgen.linter.wiring import selectors_match_pods

POD = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "r/a:1"}]}}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": POD}}
# The labels: ray-project/kuberay v1.6.2, ray-operator/controllers/ray/common/pod.go; kubeflow/training-operator v1.9.4,
# pkg/apis/kubeflow.org/v1/common_types.go; kubernetes-sigs/jobset v0.12.0, api/jobset/v1alpha2/jobset_types.go;
# CloudNativePG 1.29, Labels and annotations.
OPERATORS = {
    "RayCluster": ("ray.io/v1", {"ray.io/node-type": "head", "app.kubernetes.io/name": "kuberay"}),
    "MPIJob": ("kubeflow.org/v2beta1", {"training.kubeflow.org/job-role": "launcher", "app": "mine"}),
    "PyTorchJob": ("kubeflow.org/v1", {"training.kubeflow.org/replica-type": "master", "job": "mine"}),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", {"jobset.sigs.k8s.io/jobset-name": "mine", "tier": "mine"}),
    "TrainJob": ("trainer.kubeflow.org/v1alpha1", {"jobset.sigs.k8s.io/jobset-name": "mine", "tier": "mine"}),
    "Job": ("batch.volcano.sh/v1alpha1", {"volcano.sh/job-name": "mine", "tier": "mine"}),
    "Cluster": ("postgresql.cnpg.io/v1", {"cnpg.io/cluster": "db", "cnpg.io/instanceRole": "primary"}),
}


def reported(selector: dict[str, str], *others: Object, namespace: str = "") -> bool:
    spec: dict[str, Any] = {"selector": selector, "ports": [{"port": 80}]}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "mine", "namespace": namespace},
        "spec": spec,
    }
    return bool(list(selectors_match_pods([service, DEPLOYMENT, *others])))


@pytest.mark.parametrize("kind", OPERATORS)
def test_a_service_of_pods_that_an_operator_makes(kind: str) -> None:
    api_version, labels = OPERATORS[kind]
    made: Object = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "mine"}, "spec": {}}
    assert not reported(labels, made)
    # the operator of another object makes no such pods
    other = {**made, "apiVersion": "example.com/v1", "kind": "Thing"}
    assert reported(labels | {"tier": "mine"}, other)
    # nor does an operator make pods with labels of nobody's domain alone
    assert reported({"tier": "mine"}, made)


def test_groups_of_kubernetes_own_are_no_operators() -> None:
    ingress: Object = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "a"}}
    assert reported({"app.kubernetes.io/name": "mine", "k8s.io/part": "mine"}, ingress)


def test_a_release_that_may_make_pods_has_services_of_pods_that_no_template_describes() -> None:
    role: Any = {"kind": "ClusterRole", "metadata": {"name": "a"}, "rules": [{"resources": ["pods"], "verbs": ["get"]}]}
    assert reported({"operator": "leader"}, role)
    role["rules"] += [{"resources": ["pods"], "verbs": ["patch"]}]
    assert not reported({"operator": "leader"}, role)
    # all labels are those of its own pods, and a value is not
    assert reported({"app": "wbe"}, role)
    # of a NetworkPolicy too: the pods that JupyterHub makes have the labels of the hub with other values
    policy: Any = {"kind": "NetworkPolicy", "metadata": {"name": "a"}, "spec": {"podSelector": {"matchLabels": {}}}}
    policy["spec"]["podSelector"]["matchLabels"] = {"app": "lint-user"}
    assert list(selectors_match_pods([policy, DEPLOYMENT]))
    assert not list(selectors_match_pods([policy, DEPLOYMENT, role]))


def test_a_service_in_kube_system_may_have_pods_of_kubernetes_itself() -> None:
    assert not reported({"app": "kube-dns"}, namespace="kube-system")
    assert reported({"app": "kube-dns"}, namespace="mine")


def test_the_object_of_a_test_does_not_hide_that_of_the_release() -> None:
    env: Any = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "lint-a", "key": "main"}}}]
    spec = {"containers": [{"name": "main", "image": "r/a:1", "env": env}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    held: Any = {"kind": "ConfigMap", "metadata": {"name": "lint-a"}, "data": {"main": "a"}}
    hook = {**held, "metadata": {"name": "lint-a", "annotations": {"helm.sh/hook": "test"}}, "data": {"run.sh": "a"}}
    assert not list(names_are_in_the_release([held, pod, hook]))
    assert not list(names_are_in_the_release([hook, held, pod]))
    assert list(names_are_in_the_release([pod, hook]))


def test_what_a_role_may_write_is_made_as_the_release_runs() -> None:
    def named(kind: str, name: str, key: str, *rules: dict[str, list[str]]) -> bool:
        env: Any = [{"name": "A", "valueFrom": {f"{kind[0].lower()}{kind[1:]}KeyRef": {"name": name, "key": key}}}]
        spec = {"containers": [{"name": "main", "image": "r/a:1", "env": env}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
        role = {"kind": "Role", "metadata": {"name": "a"}, "rules": list(rules)}
        held = {"kind": kind, "metadata": {"name": "lint-held"}, "data": {"address": "a"}}
        return bool(list(names_are_in_the_release([pod, role, held])))

    for kind, resource in (("ConfigMap", "configmaps"), ("Secret", "secrets")):
        for rule, spared in (
            ({"resources": [resource], "verbs": ["patch"]}, True),
            ({"resources": ["*"], "verbs": ["*"]}, True),
            ({"resources": [resource], "verbs": ["update"], "resourceNames": ["lint-held", "lint-made"]}, True),
            ({"resources": [resource], "verbs": ["update"], "resourceNames": ["other"]}, False),
            ({"resources": [resource], "verbs": ["get", "list"]}, False),
            ({"resources": ["pods"], "verbs": ["create"]}, False),
        ):
            assert named(kind, "lint-held", "tree", rule) is not spared, rule
            assert named(kind, "lint-made", "tree", rule) is not spared, rule
            # a slip of what the release has is one, whoever writes
            assert named(kind, "lint-held", "adress", rule)
            assert named(kind, "lint-hedl", "address", rule)
