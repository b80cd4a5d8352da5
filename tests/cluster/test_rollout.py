"""Every surprise that plain Helm has for immutable runs: shown with Helm 4 and 3, and absent with chartgen."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import manifests
import pytest
from releases import RELEASE, Site, rolling, run_chart, site_of, small
from selection import HELMS

from chartgen.errors import ChartgenError
from chartgen.kube import JOB, JOBSET, POD, WORKLOAD, wait_for
from chartgen.kube.workloads import outcome
from chartgen.rehearsal.controlplane import ControlPlane

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def machines(plane: ControlPlane) -> Iterator[ControlPlane]:
    with rolling(plane) as found:
        yield found


@pytest.fixture(params=HELMS)
def here(request: pytest.FixtureRequest, machines: ControlPlane) -> Iterator[Site]:
    with site_of(request, machines, "roll") as found:
        yield found


def test_unchanged_upgrade_starts_nothing_and_a_changed_one_replaces(here: Site) -> None:
    here.roll("install", small(), {"run": {"steps": 1}})
    pods, (first,) = here.running(), here.runs()
    here.roll("upgrade", small(), {"run": {"steps": 1}, "note": "other"})
    assert here.runs() == [first]
    assert sorted(here.running()) == sorted(pods)
    here.roll("upgrade", small(), {"run": {"steps": 2}})
    (second,) = here.runs()
    assert second != first
    assert here.lines == [f"removing JobSet {first}"]
    assert not set(here.running()) & set(pods)
    assert here.statuses() == ["superseded", "superseded", "deployed"]


def test_two_writers(here: Site) -> None:
    """Helm starts the second run while the first one's pods still end; chartgen's are all gone before."""
    here.plain("install", RELEASE, chart=small(), values={"run": {"steps": 1}})
    here.running()
    here.plain("upgrade", RELEASE, chart=small(), values={"run": {"steps": 2}})
    wait_for(lambda: len({pod["metadata"]["labels"]["run"] for pod in _all_pods(here)}) > 1, what="two", timeout=180)
    here.running()
    before = {pod["metadata"]["uid"] for pod in _all_pods(here)}
    here.roll("upgrade", small(), {"run": {"steps": 3}})
    assert not before & {pod["metadata"]["uid"] for pod in _all_pods(here)}


def test_orphaned_run_after_a_denied_upgrade(here: Site) -> None:
    """Helm forgets the first run when an upgrade is denied and then uninstalled; chartgen denies before it acts."""
    here.plain("install", RELEASE, chart=small(), values={"run": {"steps": 1}})
    (first,) = here.runs()
    refused = run_chart(manifests.jobset("x", 2), extra={"apiVersion": "v1", "kind": "Service", **_broken_service()})
    assert here.plain("upgrade", RELEASE, chart=refused, values={"run": {"steps": 2}})
    assert here.plain("uninstall", RELEASE) == ""
    assert first in here.runs(), "the run that Helm has forgotten"
    # chartgen: the same denied upgrade changes nothing, and uninstall finds what plain Helm has left
    with pytest.raises(ChartgenError, match=r"Service broken: .*spec\.ports"):
        here.roll("install", refused, {"run": {"steps": 2}})
    here.roll("install", small(), {"run": {"steps": 3}})
    assert first not in here.runs()
    (third,) = here.runs()
    with pytest.raises(ChartgenError, match="Service broken"):
        here.roll("upgrade", refused, {"run": {"steps": 4}})
    assert here.runs() == [third]
    here.uninstall()
    wait_for(lambda: here.left() == [] or None, what="that nothing is left", timeout=180)


def test_evicted_bystander(here: Site, machines: ControlPlane) -> None:
    """In a preemptive queue Helm's create-first evicts a run of lower priority; delete-first leaves it alone."""
    queue = f"pre-{here.helm.parent.parent.name.partition('-')[0]}"
    objects = manifests.queue(queue, 32, here.namespace, topology=False)
    next(item for item in objects if item["kind"] == "ClusterQueue")["spec"]["preemption"] = {
        "withinClusterQueue": "LowerPriority"
    }
    objects[0]["spec"]["nodeLabels"] = {"pool": "roll"}
    classes = [
        {**_priority(f"{queue}-high", 1000), "kind": "WorkloadPriorityClass"},
        {**_priority(f"{queue}-low", 1), "kind": "WorkloadPriorityClass"},
    ]
    machines.cluster.apply([*objects, *classes])
    bystander = manifests.jobset("bystander", 2, queue=queue, namespace=here.namespace)
    bystander["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = f"{queue}-low"
    machines.cluster.apply([bystander])
    run = manifests.jobset("x", 2, queue=queue)
    run["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = f"{queue}-high"
    chart = run_chart(run)
    here.roll("install", chart, {"run": {"steps": 1}})
    here.running(4)
    here.roll("upgrade", chart, {"run": {"steps": 2}})
    here.running(4)
    assert not _evicted(here)
    here.plain("upgrade", RELEASE, chart=chart, values={"run": {"steps": 3}})
    wait_for(lambda: _evicted(here) or None, what="that Helm's upgrade evicts the bystander", timeout=180)


def test_run_again_after_its_time_to_live(here: Site) -> None:
    """An unchanged upgrade runs a finished and removed Job again with Helm; chartgen asks for a word."""
    chart = small("job")
    here.plain("install", RELEASE, chart=chart, values={"run": {"steps": 1}})
    (first,) = here.runs()
    here.cluster.delete(JOB, first, here.namespace, foreground=True)
    wait_for(lambda: here.cluster.get(JOB, first, here.namespace) is None, what="that the job is gone", timeout=180)
    message = f"^run {first} has ended and was removed, .*; to run it once more, add --set run.again=<word>$"
    with pytest.raises(ChartgenError, match=message):
        here.roll("upgrade", chart, {"run": {"steps": 1}})
    assert here.runs() == []
    assert here.plain("upgrade", RELEASE, chart=chart, values={"run": {"steps": 1}}) == ""
    assert here.runs() == [first], "what plain Helm does"
    here.roll("upgrade", chart, {"run": {"steps": 1, "again": "x"}})
    assert first not in here.runs()


def test_finished_run_is_not_started_again(here: Site) -> None:
    chart = run_chart(_quick(manifests.jobset("x", 2, pool="roll")))
    here.roll("install", chart, {"run": {"steps": 1}})
    (first,) = here.runs()
    wait_for(lambda: _outcome(here, first) == "finished" or None, what="that the run has finished", timeout=180)
    uid = _uid(here, first)
    here.roll("upgrade", chart, {"run": {"steps": 1}, "note": "x"})
    assert _uid(here, first) == uid
    here.roll("upgrade", chart, {"run": {"steps": 2}})
    with pytest.raises(ChartgenError, match=f"^run {first} has finished already, .* --set run.again=<word>$"):
        here.roll("upgrade", chart, {"run": {"steps": 1}})
    with pytest.raises(ChartgenError, match=f"^run {first} has finished already, .* --again WORD$"):
        here.rollback(2)
    here.rollback(2, again="once")
    assert first not in here.runs()


def test_eviction_by_suspend(here: Site, machines: ControlPlane) -> None:
    """A chart that writes `suspend: true` evicts its own admitted run at an unchanged upgrade; it is refused."""
    queue = f"sus-{here.helm.parent.parent.name.partition('-')[0]}"
    objects = manifests.queue(queue, 32, here.namespace, topology=False)
    objects[0]["spec"]["nodeLabels"] = {"pool": "roll"}
    machines.cluster.apply(objects)
    run = manifests.job("x", 2, queue=queue)
    run["spec"]["suspend"] = True
    here.plain("install", RELEASE, chart=run_chart(run), values={})
    pods = set(here.running())
    with pytest.raises(ChartgenError, match=r"has changed .*suspend|writes `suspend` and asks for a queue"):
        here.roll("upgrade", run_chart(run), {})
    force = [] if "helm3" in str(here.helm) else ["--force-conflicts"]
    assert here.plain("upgrade", RELEASE, *force, chart=run_chart(run)) == ""
    _wait_until_gone(here, pods)  # and Kueue starts the run again


def test_conflict_over_tolerations(here: Site, machines: ControlPlane) -> None:
    """Kueue writes the flavor's tolerations into a run; a chart with others cannot even be upgraded unchanged."""
    queue = f"tol-{here.helm.parent.parent.name.partition('-')[0]}"
    objects = manifests.queue(queue, 32, here.namespace, topology=False)
    objects[0]["spec"]["nodeLabels"] = {"pool": "roll"}
    objects[0]["spec"]["tolerations"].append({"key": "spot", "operator": "Exists", "effect": "NoSchedule"})
    machines.cluster.apply(objects)
    chart = run_chart(manifests.job("x", 2, queue=queue))
    here.roll("install", chart, {"run": {"steps": 1}})
    uids = here.running()
    with pytest.raises(ChartgenError, match=r"^Job my-run-\w+: .*(tolerations|immutable)") as caught:
        here.roll("upgrade", chart, {"run": {"steps": 1}, "note": "x"})
    assert "\n" not in str(caught.value)
    assert here.plain("upgrade", RELEASE, chart=chart, values={"run": {"steps": 1}, "note": "x"}) != ""
    assert sorted(here.running()) == sorted(uids)


def test_accepted_jobset_that_never_starts(here: Site) -> None:
    chart = small(mounts=True)
    assert here.plain("install", RELEASE, "--wait", chart=chart) == "", "Helm calls it deployed"
    time.sleep(2)
    assert here.pods() == []
    here.uninstall()
    with pytest.raises(ChartgenError, match=r'volumeMounts\[0\].name: Not found: "nowhere"; the run would be accepted'):
        here.roll("install", chart)
    assert here.left() == []


def _all_pods(here: Site) -> list[Any]:
    return here.cluster.list(POD, namespace=here.namespace)


def _wait_until_gone(here: Site, uids: set[str]) -> None:
    def gone() -> bool:
        return not uids & {pod["metadata"]["uid"] for pod in here.pods()}

    wait_for(gone, what="that the pods are gone", timeout=180)


def _evicted(here: Site) -> bool:
    """Report whether Kueue has preempted the bystander's Workload."""
    for item in here.cluster.list(WORKLOAD, namespace=here.namespace):
        if item["metadata"]["name"].startswith("jobset-bystander"):
            conditions = {found["type"]: found["status"] for found in item.get("status", {}).get("conditions", ())}
            return "Evicted" in conditions
    raise AssertionError("the bystander has no Workload")


def _outcome(here: Site, name: str) -> str:
    run = here.cluster.get(JOBSET, name, here.namespace)
    assert run
    return outcome({"kind": "JobSet", "apiVersion": JOBSET.api_version, **run})


def _uid(here: Site, name: str) -> str:
    run = here.cluster.get(JOBSET, name, here.namespace)
    assert run
    return str(run["metadata"]["uid"])


def _quick(run: dict[str, Any]) -> dict[str, Any]:
    """Let the pods of a JobSet succeed after a second."""
    template = run["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template["metadata"]["annotations"] = {"pod-complete.stage.kwok.x-k8s.io/delay": "1s"}
    return run


def _priority(name: str, value: int) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "metadata": {"name": name}, "value": value}


def _broken_service() -> dict[str, Any]:
    labels = {"app.kubernetes.io/instance": RELEASE}
    return {"metadata": {"name": "broken", "labels": labels}, "spec": {"ports": [{"port": 99999}]}}
