"""A run of a workload kind of a user's folder, followed by the commands; the kind is known by its YAML alone.

The tests stand in for the kind's controller: they make what the object contains or describes, and write its phase. The
genuine CRDs come from the projects' Go modules.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from answers import answer
from click.testing import Result
from own_kinds import own_kinds
from userlib import chartgen

from chartgen.composer.library import open_library
from chartgen.composer.node_pools import node_pool
from chartgen.composer.target import load_target
from chartgen.helm.yaml import load_file, require_map
from chartgen.kube import NAMESPACE, Kind, Object, wait_for
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.foreign import definition, register
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines

pytestmark = pytest.mark.engines
WRAPPER = Kind("workload.codeflare.dev/v1beta2", "AppWrapper", "appwrappers")
GROUP = Kind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets")
MODULES = {WRAPPER: "github.com/project-codeflare/appwrapper@v1.1.2", GROUP: "sigs.k8s.io/lws@v0.7.0"}


def namespace(folder: Path) -> str:
    """The namespace of a test: that of the one before it may still be ending."""
    return f"own-kinds-{folder.name[-1]}"


def genuine(kind: Kind, work: Path) -> list[Object]:
    """The CRD of a kind from its project; skips the test where Go cannot fetch it."""
    go = shutil.which("go") or pytest.skip("Go is not installed")
    ran = subprocess.run(
        [go, "mod", "download", "-json", MODULES[kind]], cwd=work, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        pytest.skip(f"cannot fetch {MODULES[kind]}")
    files = Path(json.loads(ran.stdout)["Dir"]).glob(f"config/crd/bases/*_{kind.plural}.yaml")
    return [require_map(load_file(file), "a CRD") for file in files]


@pytest.fixture
def folder(plane: ControlPlane, tmp_path: Path) -> Iterator[Path]:
    """The user's folder, and a cluster with a namespace and machines."""
    made = own_kinds(tmp_path)
    machines = node_pool(load_target("box", open_library([made])).machines["box-8"], 2)
    plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace(made)}}])
    create_machines(plane.cluster, [machines])
    yield made
    delete_machines(plane.cluster, machines.names)
    plane.cluster.delete(NAMESPACE, namespace(made))


def parts_of_wrapper(run: Object) -> list[Object]:
    """What the controller of AppWrappers makes."""
    return [component["template"] for component in run["spec"]["components"]]


def parts_of_group(run: Object) -> list[Object]:
    """What the controller of LeaderWorkerSets makes of a group, in one StatefulSet in place of two."""
    group, name = run["spec"]["leaderWorkerTemplate"], run["metadata"]["name"]
    template = group["workerTemplate"]
    spec = {"serviceName": name, "replicas": group["size"], "template": template, "podManagementPolicy": "Parallel"}
    spec["selector"] = {"matchLabels": {"run": template["metadata"]["labels"]["run"]}}
    return [{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec}]


@pytest.mark.parametrize(
    ("kind", "workload", "parts", "crds"),
    [
        (WRAPPER, "appwrapper", parts_of_wrapper, lambda kind, _: [definition([kind])]),
        pytest.param(WRAPPER, "appwrapper", parts_of_wrapper, genuine, marks=pytest.mark.full),
        pytest.param(GROUP, "leader-worker-set", parts_of_group, genuine, marks=pytest.mark.full),
    ],
)
def test_a_run_of_an_own_kind_is_installed_followed_and_removed(
    plane: ControlPlane,
    folder: Path,
    kind: Kind,
    workload: str,
    parts: Callable[[Object], list[Object]],
    crds: Callable[[Kind, Path], list[Object]],
) -> None:
    place = namespace(folder)

    def command(*words: str) -> Result:
        env = {"KUBECONFIG": str(plane.kubeconfig), "CHARTGEN_PATH": str(folder)}
        return chartgen(*words, "-n", place, env=env)

    def phase() -> str:
        return str(answer(command("status", "mine", "--output", "json").output)["phase"])

    made = crds(kind, folder)
    register(plane.cluster, made)
    sets = ("nodes=2", "launcher=nemo-1", "launchers.nemo-1.image=example.com/nemo:1")
    installed = command("install", "box", "mine", "--workload", workload, *(w for s in sets for w in ("--set", s)))
    assert installed.exit_code == 0, installed.output
    (run,) = plane.cluster.list(kind, namespace=place)
    owner = {"apiVersion": kind.api_version, "kind": kind.name}
    reference = {**owner, "name": run["metadata"]["name"], "uid": run["metadata"]["uid"]}
    found = parts(run)
    for part in found:
        part["metadata"]["ownerReferences"] = [reference]
    plane.cluster.apply(found, namespace=place)
    wait_for(lambda: phase() == "running", what="that its pods run", timeout=180)
    assert command("wait", "mine", "--for", "running", "--timeout", "1m").exit_code == 0
    assert len(command("logs", "mine").output.splitlines()) == 2
    if kind is WRAPPER:
        status = {"status": {"phase": "Succeeded"}}
        below = next(iter(made[0]["spec"]["versions"][0].get("subresources", [""])))
        plane.cluster.patch(kind, run["metadata"]["name"], status, namespace=place, subresource=below)
        assert command("wait", "mine", "--for", "finished", "--timeout", "1m").exit_code == 0
    removed = command("uninstall", "mine", "--lose-progress")
    assert removed.exit_code == 0, removed.output
    assert plane.cluster.list(kind, namespace=place) == []
    for crd in made:
        plane.cluster.delete_object(crd)
