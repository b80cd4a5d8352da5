"""`chartgen init --from-cluster`: the site file names what a real API server lists, and the setup chart takes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import manifests
import pytest
from rendered import target
from userlib import chartgen

from chartgen.composer.node_pools import node_pool
from chartgen.helm import yaml
from chartgen.kube import NAMESPACE, NODE
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines

SPACE = "surveyed"
CLAIM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "lustre", "namespace": SPACE},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Ti"}}},
}


@pytest.fixture
def here(plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlPlane]:
    """A namespace with a queue, and three machines of one type, of which one is cordoned."""
    machine = target("eks-p5").machines["p5en.48xlarge"]
    names = create_machines(plane.cluster, [node_pool(machine, 3)])
    plane.cluster.patch(NODE, names[0], {"spec": {"unschedulable": True}})
    queue = manifests.queue("surveyed", 16, SPACE, topology=False)
    plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}, *queue])
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))
    monkeypatch.chdir(tmp_path)
    yield plane
    plane.cluster.delete(NAMESPACE, SPACE)
    for item in queue:
        plane.cluster.delete_object(item, namespace=SPACE)
    delete_machines(plane.cluster, names)


def written(*options: str) -> tuple[str, Any]:
    """The text of a new site file, and what it states."""
    done = chartgen("init", "eks-p5", "--from-cluster", "-n", SPACE, "--to", "site.yaml", *options)
    assert done.exit_code == 0, done.output
    text = Path("site.yaml").read_text()
    Path("site.yaml").unlink()
    return text, yaml.load(text, "site.yaml").data


def test_a_site_file_names_what_the_cluster_has(here: ControlPlane) -> None:
    here.cluster.apply([CLAIM])
    text, values = written()
    assert values["queue"] == {"name": "surveyed"}
    assert (values["machineType"], values["setup"]) == ("p5en.48xlarge", {"quota": {"nodes": 2}})
    assert values["storage"]["outputs"] == {"from": "pvc://lustre/outputs"}
    assert "machines: p5en.48xlarge (2)" in text
    Path("site.yaml").write_text(text)
    checked = chartgen("check", "eks-p5", "--preset", "llama3-8b", "-f", "site.yaml")
    assert checked.exit_code == 0, checked.output

    Path("site.yaml").unlink()
    # with a second one, the choice is the user's
    here.cluster.apply([{**CLAIM, "metadata": {"name": "scratch", "namespace": SPACE}}])
    text, values = written()
    assert values["storage"]["outputs"] == {"from": "pvc://fsx-claim/outputs"}
    assert "claims: lustre, scratch\n" in text


def test_nothing_is_read_unasked() -> None:
    assert chartgen("init", "eks-p5", "-n", SPACE, "--to", "/nowhere/site.yaml").exit_code == 2
