"""A run of a workload kind of a user's folder, followed by the commands; the kind is known by its YAML alone.

The test stands in for the kind's controller: it makes what the AppWrapper contains, and writes its phase.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from answers import answer
from click.testing import Result
from own_kinds import own_kinds
from userlib import chartgen

from chartgen.composer.library import open_library
from chartgen.composer.node_pools import node_pool
from chartgen.composer.target import load_target
from chartgen.kube import NAMESPACE, Kind, Object, wait_for
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.foreign import register
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines

pytestmark = pytest.mark.engines
NS, GROUP = "own-kinds", "workload.codeflare.dev"
WRAPPER = Kind(f"{GROUP}/v1beta2", "AppWrapper", "appwrappers")
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{WRAPPER.plural}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": WRAPPER.name, "plural": WRAPPER.plural},
        "versions": [{"name": "v1beta2", "served": True, "storage": True, "schema": {"openAPIV3Schema": FREE}}],
    },
}


@pytest.fixture
def folder(plane: ControlPlane, tmp_path: Path) -> Iterator[Path]:
    """The user's folder, and a cluster with the kind, a namespace and machines."""
    made = own_kinds(tmp_path)
    machines = node_pool(load_target("box", open_library([made])).machines["box-8"], 2)
    register(plane.cluster, [CRD])
    plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}}])
    create_machines(plane.cluster, [machines])
    yield made
    delete_machines(plane.cluster, machines.names)
    plane.cluster.delete(NAMESPACE, NS)
    plane.cluster.delete_object(CRD)


def test_a_run_of_an_own_kind_is_installed_followed_and_removed(plane: ControlPlane, folder: Path) -> None:
    def command(*words: str) -> Result:
        env = {"KUBECONFIG": str(plane.kubeconfig), "CHARTGEN_PATH": str(folder)}
        return chartgen(*words, "-n", NS, env=env)

    def phase() -> str:
        return str(answer(command("status", "mine", "--output", "json").output)["phase"])

    sets = ("nodes=2", "launcher=nemo-1", "launchers.nemo-1.image=example.com/nemo:1")
    installed = command("install", "box", "mine", "--workload", "appwrapper", *(w for s in sets for w in ("--set", s)))
    assert installed.exit_code == 0, installed.output
    (run,) = plane.cluster.list(WRAPPER, namespace=NS)
    owner = {"apiVersion": WRAPPER.api_version, "kind": WRAPPER.name}
    reference = {**owner, "name": run["metadata"]["name"], "uid": run["metadata"]["uid"]}
    parts = [component["template"] for component in run["spec"]["components"]]
    for part in parts:
        part["metadata"]["ownerReferences"] = [reference]
    plane.cluster.apply(parts, namespace=NS)
    wait_for(lambda: phase() == "running", what="that its pods run", timeout=180)
    plane.cluster.patch(WRAPPER, run["metadata"]["name"], {"status": {"phase": "Succeeded"}}, namespace=NS)
    assert command("wait", "mine", "--for", "finished", "--timeout", "1m").exit_code == 0
    removed = command("uninstall", "mine")
    assert removed.exit_code == 0, removed.output
    assert plane.cluster.list(WRAPPER, namespace=NS) == []
