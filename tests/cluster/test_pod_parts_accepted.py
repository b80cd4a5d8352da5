"""Parts of pods in values: a real API server accepts and refuses what `check` does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chartgen.helm.yaml import load_file
from chartgen.kube import NAMESPACE, POD, ClusterError
from chartgen.rehearsal.controlplane import ControlPlane

PARTS: Any = load_file(Path(__file__).parents[1] / "data" / "pod-parts.yaml").data
named = pytest.mark.parametrize("case", PARTS, ids=lambda case: json.dumps(case["value"]))


def values_of(case: dict[str, Any]) -> dict[str, Any]:
    return {case["part"]: case["value"] if case["part"] == "affinity" else [case["value"]]}


@pytest.mark.engines
@named
def test_the_api_server_agrees(case: dict[str, Any], plane: ControlPlane) -> None:
    parts = {"extraVolumes": [], "extraVolumeMounts": [], **values_of(case)}
    mounts, volumes = parts.pop("extraVolumeMounts"), parts.pop("extraVolumes")
    plane.cluster.apply([{"apiVersion": "v1", "kind": NAMESPACE.name, "metadata": {"name": "parts"}}])
    spec = {
        "containers": [{"name": "main", "image": "example.com/a:1", "volumeMounts": mounts}],
        "volumes": [{"name": "data", "emptyDir": {}}, *volumes],
        **parts,
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "parts"}, "spec": spec}
    refused = ""
    try:
        plane.cluster.apply([pod], namespace="parts", dry_run=True)
        plane.cluster.create(POD, pod, dry_run=True)
    except ClusterError as error:
        refused = str(error)
    assert bool(refused) == ("says" in case and not case.get("narrower")), refused
