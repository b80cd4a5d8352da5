"""The step that the doctor prints for a missing queue is run as it stands, and the run is admitted."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from answers import answer
from rendered import VALUES, chart, target
from userlib import chartgen

from chartgen.composer.node_pools import node_pool
from chartgen.helm.values import load_values
from chartgen.kube import CLUSTER_QUEUE, NAMESPACE, Cluster, wait_for
from chartgen.rehearsal import engines
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.rehearsal.verdict import look
from chartgen.releases import helm_release
from chartgen.releases.helm_release import Place

pytestmark = pytest.mark.engines
ROOT = VALUES.parent
FILES = [Path("values") / name for name in ("gpt3-5b.yaml", "site.gke-a3mega.example.yaml")]
SETS = ["nodes=4", "queue.name=cured", "topology.mode=", "network.hostNetwork=true"]
OPTIONS = [word for name in FILES for word in ("-f", name)] + [word for each in SETS for word in ("--set", each)]


@pytest.fixture
def teams(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """Two namespaces, and machines that one run of both teams fills."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))
    spaces = ("cure-one", "cure-two")
    for space in spaces:
        plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}])
    names = create_machines(plane.cluster, [node_pool(target().default_machine, 4)])
    yield spaces
    for space in reversed(spaces):
        for name in ("cured-run", "setup"):
            helm("uninstall", name, "--namespace", space, "--ignore-not-found")
        plane.cluster.delete(NAMESPACE, space)
    delete_machines(plane.cluster, names)


def helm(*arguments: str) -> None:
    done = subprocess.run([engines.require("helm"), *arguments], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def signs(space: str, *more: str) -> dict[str, tuple[str, str]]:
    """Status and fix of the doctor's checks of the queue."""
    ran = chartgen("doctor", "gke-a3mega", "cured-run", *OPTIONS, *more, "-n", space, "--output", "json")
    rows = answer(ran.stdout)["diagnoses"]
    return {row["name"]: (row["status"], row["fix"] or "") for row in rows if row["name"].startswith("queue")}


def follow(fix: str) -> list[str]:
    """Run the command in a fix; its words."""
    words = shlex.split(fix.partition("install the setup chart: ")[2].rpartition(", or set queue.name")[0])
    assert words[0] == "helm", fix
    helm(*words[1:])
    return words


def admitted(cluster: Cluster, plane: ControlPlane, space: str) -> None:
    values = load_values([ROOT / name for name in FILES], set_values=SETS)
    place = Place(space, plane.kubeconfig)
    helm_release.install(chart(), "cured-run", values.data, place)
    wait_for(lambda: look(cluster, "cured-run", namespace=space).admitted, what="that it is admitted", timeout=180)
    helm_release.uninstall("cured-run", place)


def test_queue_of_two_teams(plane: ControlPlane, teams: tuple[str, str]) -> None:
    one, two = teams
    cluster = plane.cluster
    status, fix = signs(one)["queue"]
    assert status == "fail"
    words = follow(fix)
    assert words[words.index("--namespace") + 1] == one
    held = cluster.get(CLUSTER_QUEUE, "cured")
    assert held
    (group,) = held["spec"]["resourceGroups"]
    gpus = next(each for each in group["flavors"][0]["resources"] if each["name"] == "nvidia.com/gpu")
    assert int(gpus["nominalQuota"]) == 32, "of the run's machines, not of one"
    wait_for(lambda: signs(one)["queue"][0] == "pass" or None, what="that the queue is active", timeout=180)
    admitted(cluster, plane, one)

    status, fix = signs(two)["queue"]
    assert status == "fail"
    assert "setup.cluster=false" in follow(fix)
    wait_for(lambda: signs(two)["queue"][0] == "pass" or None, what="that the queue is active", timeout=180)
    admitted(cluster, plane, two)

    # a second queue would take the place of the first: the release of this name holds one
    status, fix = signs(two, "--set", "queue.name=other")["queue"]
    assert status == "fail"
    assert "cured" in fix
    assert "helm" not in fix


def test_quota_that_the_site_file_keeps_too_small(teams: tuple[str, str]) -> None:
    _, fix = signs(teams[0], "--set", "setup.quota.nodes=1")["queue"]
    words = shlex.split(fix)
    assert [word for word in words if word.startswith("setup.quota.nodes=")][-1].startswith("setup.quota.nodes=4")


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("--set", "env.DB_PASSWORD=hunter2-x"),
        ("--set-json", 'podAnnotations={"example.com/password": "hunter2-x"}'),
    ],
)
def test_no_secret_is_in_the_command(teams: tuple[str, str], flag: str, text: str, form: str) -> None:
    """Of secrets that `check` does not know for such; others it refuses before anything is looked up."""
    ran = chartgen("doctor", "gke-a3mega", "cured-run", *OPTIONS, flag, text, "-n", teams[0], "--output", form)
    assert "install the setup chart: helm install" in ran.stdout
    assert "hunter2-x" not in ran.output
