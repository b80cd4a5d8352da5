"""A setup chart is installed, and a run starts on its queue and claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rendered import VALUES, Objects, chart, one, rendered_setup, setup_chart, target

from chartgen.composer.node_pools import node_pool
from chartgen.helm.values import load_values
from chartgen.kube import Cluster, wait_for
from chartgen.kube.node_pool import NodePool
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.rehearsal.verdict import wait_for_verdict
from chartgen.releases import helm_release
from chartgen.releases.helm_release import Place

SITE = VALUES / "site.gke-a3high.example.yaml"
COMPONENT = "app.kubernetes.io/component"


def setup(*sets: str, files: tuple[Path, ...] = (SITE,), name: str = "gke-a3high", **more: Any) -> Objects:
    return rendered_setup(*sets, files=files, name=name, **more)


def tensorboard(*sets: str, **more: Any) -> tuple[Any, Any, Any]:
    """The Deployment's pod template, its container, and the volume of the outputs."""
    found = one("Deployment", setup(*sets, **more))
    template = found["spec"]["template"]
    assert found["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (program,) = template["spec"]["containers"]
    (outputs,) = (volume for volume in template["spec"]["volumes"] if volume["name"] == "outputs")
    return template, program, outputs


def placed(cluster: Cluster, namespace: str) -> list[str]:
    """The machines of TensorBoard's pods."""
    pods = cluster.list(cluster.kind("v1", "Pod"), namespace=namespace, labels={COMPONENT: "tensorboard"})
    return [item["spec"].get("nodeName", "") for item in pods]


def bound(cluster: Cluster, namespace: str) -> list[str]:
    """The claims that have a volume."""
    claims = cluster.list(cluster.kind("v1", "PersistentVolumeClaim"), namespace=namespace)
    return [item["metadata"]["name"] for item in claims if item.get("status", {}).get("phase") == "Bound"]


@pytest.mark.engines
def test_setup_then_a_run_on_its_queue_and_claim(plane: ControlPlane) -> None:
    namespace, cluster = "a3high", plane.cluster
    place = Place(namespace, plane.kubeconfig)
    values = load_values((VALUES / "gpt3-5b.yaml", VALUES / "gke-a3high" / "gpt3-5b.yaml", SITE)).data
    cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}])
    machines = node_pool(target("gke-a3high").machines["a3-highgpu-8g"], 2)
    others = NodePool("a3high-cpu", 1, {"cpu": "4", "memory": "16Gi", "pods": "110"})
    names = create_machines(cluster, [machines, others])
    try:
        helm_release.install(setup_chart("gke-a3high"), "a3", values, place)
        wait_for(lambda: bound(cluster, namespace) == ["training"], what="the bound claim", timeout=180)
        helm_release.install(chart(name="gke-a3high"), "gpt3", values, place)
        verdict = wait_for_verdict(cluster, "gpt3", namespace=namespace, timeout=180)
        assert (verdict.ok, verdict.running, verdict.gpus) == (True, 2, 16), verdict.reasons
        wait_for(lambda: placed(cluster, namespace) == ["a3high-cpu-0"], what="TensorBoard's place", timeout=180)
    finally:
        for name in ("gpt3", "a3"):
            helm_release.uninstall(name, place)
        delete_machines(cluster, names)
    assert bound(cluster, namespace) == ["training"], "the claim outlives its release"
