"""A user whose Role covers some kinds of runs alone, on a real API server: what it does not cover is unknown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import manifests
import pytest
from answers import answer
from guests import Rule, allow, log_in, rule
from mini_charts import CHART_YAML
from userlib import chartgen

from chartgen.helm.chart import Chart
from chartgen.kube import NAMESPACE, SECRET, Cluster, Object, connect, wait_for
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.releases import helm_release
from chartgen.releases.helm_release import Place

pytestmark = pytest.mark.engines
SPACE = "guests"
Actor = Callable[[str, list[Rule]], None]
READER = [rule("", "secrets", "pods", verbs="get,list"), rule("jobset.x-k8s.io", "jobsets")]
UNREAD = {
    "jobs.batch",
    "jobs.batch.volcano.sh",
    "mpijobs.kubeflow.org",
    "pytorchjobs.kubeflow.org",
    "rayjobs.ray.io",
    "trainjobs.trainer.kubeflow.org",
}


def chart(item: Object) -> Chart:
    """A chart of chartgen's, with one object."""
    notes = f"{CHART_YAML}annotations: {{chartgen/target: onprem-p8000}}\n"
    return Chart("tiny", {"Chart.yaml": notes, "values.yaml": "", "templates/run.yaml": json.dumps(item)})


@pytest.fixture(scope="module")
def place(plane: ControlPlane) -> Iterator[Place]:
    """A namespace with a release of a JobSet and one of a PyTorchJob."""
    plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}])
    place = Place(SPACE, plane.kubeconfig)
    runs = {
        "own": manifests.jobset("own", 1, namespace=SPACE),
        "other": manifests.pytorchjob("other", 1, namespace=SPACE),
    }
    for name, item in runs.items():
        helm_release.install(chart(item), name, {}, place)
    yield place
    for name in runs:
        helm_release.uninstall(name, place)
    plane.cluster.delete(NAMESPACE, SPACE)


@pytest.fixture
def act_as(place: Place, plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Actor:
    """Makes a user with these permissions whom chartgen acts as."""

    def act(name: str, rules: list[Rule]) -> None:
        allow(plane, place.namespace, name, rules)
        config = log_in(plane, place.namespace, name, tmp_path / name)
        with connect(kubeconfig=config) as cluster:
            wait_for(lambda: may_list_secrets(cluster), what="that the role is in force", timeout=180)
        monkeypatch.setenv("KUBECONFIG", str(config))

    return act


def may_list_secrets(cluster: Cluster) -> bool:
    cluster.unread.clear()
    with cluster.optional():
        cluster.list(SECRET, namespace=SPACE)
    return not cluster.unread


def unknown(text: str) -> set[str]:
    """The resources in the lines on stderr; each line has the verb, the namespace and what to ask for."""
    lines = [line for line in text.splitlines() if "unknown: " in line]
    found = [
        re.search(r"list (\S+) in namespace guests; .*kubectl .*--verb=list --resource=(\S+),", line) for line in lines
    ]
    assert all(match and match[1] == match[2] for match in found), text
    names = [match[1] for match in found if match]
    assert len(names) == len(set(names)), "each once"
    return set(names)


def test_kinds_that_the_role_does_not_cover_are_unknown(act_as: Actor) -> None:
    act_as("reader", READER)
    found = chartgen("status", "own", "-n", SPACE)
    assert found.exit_code == 0
    assert found.stdout.startswith("own: ")
    assert unknown(found.stderr) == UNREAD | {"events"}
    told = answer(chartgen("status", "own", "-n", SPACE, "--output", "json").stdout)
    assert told["runs"] == ["JobSet own"]
    assert len(told["unread"]) == len(UNREAD) + 1


def test_a_release_whose_own_kind_is_refused_is_an_error(act_as: Actor) -> None:
    act_as("reader", READER)
    found = chartgen("status", "other", "-n", SPACE)
    assert (found.exit_code, found.stdout) == (1, "")
    (line,) = found.stderr.splitlines()
    assert "pytorchjobs" in line
    assert "--verb=list --resource=pytorchjobs.kubeflow.org" in line


def test_a_release_whose_own_kind_is_refused_does_not_hide_the_others(act_as: Actor) -> None:
    act_as("reader", READER)
    found = chartgen("status", "-n", SPACE)
    assert found.exit_code == 1
    assert [row.split()[0] for row in found.stdout.splitlines()] == ["release", "own"]
    assert unknown(found.stderr) == UNREAD | {"events"}
    (line,) = [line for line in found.stderr.splitlines() if "release other" in line]
    assert "--verb=list --resource=pytorchjobs.kubeflow.org" in line


def test_a_queue_that_the_role_does_not_cover(act_as: Actor, place: Place) -> None:
    helm_release.install(chart(manifests.jobset("queued", 1, namespace=SPACE, queue="nowhere")), "queued", {}, place)
    try:
        act_as("reader", READER)
        told = answer(chartgen("status", "queued", "-n", SPACE, "--output", "json").stdout)
        assert told["phase"] == "queued"
        (cause,) = [each["message"] for each in told["causes"] if "nowhere" in each["message"]]
        assert "list workloads.kueue.x-k8s.io" in cause
    finally:
        helm_release.uninstall("queued", place)


def test_what_doctor_asks_for_is_enough(act_as: Actor) -> None:
    least = rule("", "secrets")
    act_as("asker", [least])
    rows = answer(chartgen("doctor", "-n", SPACE, "--output", "json").stdout)["diagnoses"]
    asked = [re.search(r"--verb=(\S+) --resource=(\S+),", row["fix"]) for row in rows if row["name"] == "permissions"]
    names = [(match[1], *match[2].partition(".")[::2]) for match in asked if match]
    assert {f"{resource}.{group}" for _, resource, group in names} >= UNREAD
    act_as("settled", [least, *(rule(group, resource, verbs=verbs) for verbs, resource, group in names)])
    found = chartgen("status", "-n", SPACE)
    assert found.exit_code == 0, found.stderr
    assert [row.split()[0] for row in found.stdout.splitlines()] == ["release", "other", "own"]
    assert "unknown" not in found.stderr
