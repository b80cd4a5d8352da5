"""Whatever goes wrong on the way, the next command says what it found and goes on: nothing is lost or runs twice."""

from __future__ import annotations

import base64
import gzip
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import manifests
import pytest
from kill_at import run_killed
from releases import RELEASE, Site, rolling, run_chart, site, site_of, small
from selection import HELMS

from chartgen.errors import ChartgenError, MissingToolError
from chartgen.helm.chart import Chart
from chartgen.kube import CONFIG_MAP, JOBSET, LEASE, SECRET, wait_for
from chartgen.rehearsal import engines
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines
from chartgen.releases.lock import Lock, lease_name
from chartgen.releases.rollout import Rollout, prepare

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def machines(plane: ControlPlane) -> Iterator[ControlPlane]:
    with rolling(plane) as found:
        yield found


@pytest.fixture(params=HELMS)
def here(request: pytest.FixtureRequest, machines: ControlPlane) -> Iterator[Site]:
    with site_of(request, machines, "fault") as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chart = small()
    chart.write(tmp_path / chart.name)
    return tmp_path / chart.name


def die(here: Site, folder: Path, action: str, values: dict[str, Any], **place: Any) -> bool:
    """Kill a command on its way; the next one watches its Lease for a second only."""
    kubeconfig = here.place.kubeconfig
    assert kubeconfig
    died = run_killed(action, folder, values, here.namespace, kubeconfig, **place)
    if here.cluster.get(LEASE, lease_name(RELEASE), here.namespace):
        change = {"spec": {"leaseDurationSeconds": 1}}
        here.cluster.patch(LEASE, lease_name(RELEASE), change, namespace=here.namespace)
    return died


def whole(here: Site, steps: int) -> None:
    """Make sure that the release is healthy: one run, of these values, and nothing else."""
    (run,) = here.runs()
    here.running()
    last = here.records()[-1]
    assert (last.status, last.values) == ("deployed", {"run": {"steps": steps}})
    assert {pod["metadata"]["labels"]["run"] for pod in here.pods()} == {run}
    stray = [item for item in here.left() if item.startswith("ConfigMap") and run not in item]
    assert stray == []
    assert not [status for status in here.statuses() if status.startswith("pending")]


def test_upgrade_killed_at_any_change(here: Site, folder: Path) -> None:
    here.roll("install", small(), {"run": {"steps": 0}})
    # before Helm with one of them, within Helm with the other
    change, died, delay = 0, True, 0.3 if "helm3" in str(here.helm) else 0.0
    while died:
        steps = change + 1
        died = die(here, folder, "upgrade", {"run": {"steps": steps}}, change=change, delay=delay)
        here.roll("upgrade", small(), {"run": {"steps": steps}})
        whole(here, steps)
        change += 1
    assert change > 6, "the places at which it died"


def test_install_killed_at_any_change(here: Site, folder: Path) -> None:
    change, died = 0, True
    while died:
        died = die(here, folder, "install", {"run": {"steps": 1}}, change=change, delay=0.3 * (change % 2))
        # a command that was killed after Helm had done all has installed it
        action = "upgrade" if here.statuses() == ["deployed"] else "install"
        here.roll(action, small(), {"run": {"steps": 2}})
        whole(here, 2)
        here.uninstall()
        wait_for(lambda: here.left() == [] or None, what="that nothing is left", timeout=180)
        change += 1
    assert change > 3


def test_uninstall_killed_at_any_change(here: Site, folder: Path) -> None:
    change, died = 0, True
    while died:
        here.roll("install", small(), {"run": {"steps": 1}})
        died = die(here, folder, "uninstall", {}, change=change, delay=0.3 * (change % 2))
        if died:
            here.uninstall()
        wait_for(lambda: here.left() == [] or None, what="that nothing is left", timeout=180)
        assert here.cluster.get(LEASE, lease_name(RELEASE), here.namespace) is None
        change += 1
    assert change > 3


def test_release_that_plain_helm_left_stuck(here: Site) -> None:
    here.plain("install", RELEASE, chart=small(), values={"run": {"steps": 1}})
    uids = here.running()
    restate(here, "pending-upgrade", "Preparing upgrade", copy=True)
    assert "another operation" in here.plain("upgrade", RELEASE, chart=small(), values={"run": {"steps": 1}})
    here.roll("upgrade", small(), {"run": {"steps": 1}})
    assert here.lines[0] == ("revision 2 never ended (pending-upgrade): Preparing upgrade; what it made is taken over")
    assert sorted(here.running()) == sorted(uids), "the live run goes on"
    restate(here, "uninstalling", "Deletion in progress")
    assert here.plain("upgrade", RELEASE, chart=small(), values={"run": {"steps": 1}}) != ""
    here.lines.clear()
    here.roll("install", small(), {"run": {"steps": 1}})
    assert here.lines[0] == "an uninstall never ended: it is finished first"
    whole(here, 1)


def test_half_failed_first_install(here: Site) -> None:
    """Helm made the run and failed at the next object; the same name can be installed again, and the run goes on."""
    # the server accepts its fields, and JobSet's webhook refuses it
    broken = manifests.jobset("zz", 1, namespace=here.namespace)
    broken["spec"]["successPolicy"] = {"operator": "All", "targetReplicatedJobs": ["nosuch"]}
    values = {"run": {"steps": 1}}
    assert here.plain(
        "install", RELEASE, chart=run_chart(manifests.job("x", 2, pool="roll"), extra=broken), values=values
    )
    assert here.statuses() == ["failed"]
    uids = here.running()
    assert "cannot re" in here.plain("install", RELEASE, chart=small("job"), values=values)
    here.roll("install", small("job"), values)
    assert here.lines[0].startswith("revision 1 failed: ")
    assert sorted(here.running()) == sorted(uids)
    assert here.statuses() == ["deployed"]


def test_webhook_that_refuses(here: Site) -> None:
    here.roll("install", small(), {"run": {"steps": 1}})
    uids = here.running()
    hook = webhook(here)
    here.cluster.apply([hook])
    try:
        with pytest.raises(ChartgenError, match=r"^JobSet my-run-\w+: .*failed calling webhook"):
            wait_for(lambda: bool(here.roll("upgrade", small(), {"run": {"steps": 2}})) and None, what="a", timeout=9)
    finally:
        here.cluster.delete_object(hook)
    assert sorted(here.running()) == sorted(uids), "the run that was there goes on"


def test_name_that_others_have_taken(here: Site) -> None:
    name = {"name": "shared", "namespace": here.namespace}
    taken = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "data": {"of": "somebody"}}
    here.cluster.apply([taken])
    chart = run_chart(manifests.jobset("x", 2), extra={**taken, "metadata": {"name": "shared"}})
    with pytest.raises(ChartgenError) as caught:
        here.roll("install", chart)
    assert str(caught.value) == (
        "ConfigMap shared exists already and was not made by Helm; choose another release name, or remove it"
    )
    assert here.left() == ["ConfigMap shared"]
    found = here.cluster.get(CONFIG_MAP, "shared", here.namespace)
    assert found
    assert found["data"] == {"of": "somebody"}


@pytest.mark.threat(18)
def test_files_that_somebody_left_for_the_run_are_refused(here: Site) -> None:
    """Whoever may make ConfigMaps can annotate one as the release's: Helm adds the chart's files to its own."""
    owner = {"meta.helm.sh/release-name": RELEASE, "meta.helm.sh/release-namespace": here.namespace}
    labels = {"app.kubernetes.io/managed-by": "Helm"}
    metadata = {"name": "files", "namespace": here.namespace, "annotations": owner, "labels": labels}
    taken = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"json.py": "exit()"}}
    here.cluster.apply([taken])
    own = {**taken, "metadata": {"name": "files"}, "immutable": True, "data": {"start.sh": "exec train"}}
    with pytest.raises(ChartgenError, match=r"^ConfigMap files exists already with .*: json.py; remove it"):
        here.roll("install", run_chart(manifests.jobset("x", 2), extra=own))
    assert here.left() == ["ConfigMap files"]


def test_field_that_another_manager_holds(here: Site) -> None:
    here.roll("install", small(), {"run": {"steps": 1}, "note": "ours"})
    (run,) = here.runs()
    theirs = {
        "apiVersion": JOBSET.api_version,
        "kind": "JobSet",
        "metadata": {"name": run, "namespace": here.namespace, "annotations": {"note": "theirs"}},
    }
    here.cluster.apply([theirs])
    if "helm3" in str(here.helm):
        here.roll(
            "upgrade", small(), {"run": {"steps": 1}, "note": "new"}
        )  # it merges three ways and knows no managers
        return
    with pytest.raises(ChartgenError) as caught:
        here.roll("upgrade", small(), {"run": {"steps": 1}, "note": "new"})
    assert str(caught.value) == (
        f"JobSet {run}: chartgen has changed .metadata.annotations.note in the cluster; undo that change, or start "
        "another run with --set run.again=<word>"
    )


def test_two_people_at_once(here: Site) -> None:
    here.roll("install", small(), {"run": {"steps": 0}})

    def upgrade(steps: int) -> str:
        try:
            here.roll("upgrade", small(), {"run": {"steps": steps}})
        except ChartgenError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(3) as pool:
        said = list(pool.map(upgrade, (1, 2, 3)))
    assert said.count("") >= 1
    for text in filter(None, said):
        assert "release my-run" in text
        assert any(
            words in text for words in ("is changing", "has just changed", "has changed since the plan was made")
        )
    (record,) = [record for record in here.records() if record.status == "deployed"]
    whole(here, record.values["run"]["steps"])


def test_a_run_that_goes_after_the_plan_is_a_change_unless_it_was_going_already(here: Site) -> None:
    here.roll("install", small(), {"run": {"steps": 1}})
    (name,) = here.runs()

    def plan() -> Rollout:
        return prepare(here.cluster, here.place, small(), RELEASE, {"run": {"steps": 2}}, action="upgrade")

    def held(*by: str) -> None:
        here.cluster.patch(JOBSET, name, {"metadata": {"finalizers": list(by)}}, namespace=here.namespace)

    before = plan()
    held("chartgen.test/held")
    here.cluster.delete(JOBSET, name, here.namespace)
    with pytest.raises(ChartgenError, match="has changed since the plan was made"):
        here.carry_out(before)
    going = plan()
    held()
    wait_for(lambda: not here.cluster.get(JOBSET, name, here.namespace), what="that the run is gone", timeout=180)
    here.carry_out(going)
    whole(here, 2)


def test_lease_of_a_dead_command_is_taken_over_and_of_a_living_one_is_not(here: Site) -> None:
    here.roll("install", small(), {"run": {"steps": 1}})
    lines: list[str] = []
    taken = r"\(upgrade, \w{6}\) is changing release my-run; check `chartgen status`"
    with (
        Lock(here.cluster, RELEASE, here.namespace, "upgrade", lines.append),
        pytest.raises(ChartgenError, match=taken),
    ):
        here.roll("upgrade", small(), {"run": {"steps": 2}})
    if "helm3" in str(here.helm):
        return  # the same, and it takes 15 s
    change = {"spec": {"holderIdentity": "eve@box (upgrade, 123abc)", "renewTime": now()}}
    here.cluster.patch(LEASE, lease_name(RELEASE), change, namespace=here.namespace)
    here.lines.clear()
    here.roll("upgrade", small(), {"run": {"steps": 2}})
    assert all("eve@box (upgrade, 123abc)" in line for line in here.lines[:2])


def test_api_server_away_in_the_middle(built_engines: None, tmp_path: Path) -> None:  # noqa: ARG001
    """The command ends with what is wrong and what was done by then; the next one goes on when the server is back."""
    with ControlPlane() as plane:
        create_machines(plane.cluster, [manifests.pool("roll", 2)])
        with site(plane.cluster, plane.kubeconfig, engines.require("helm"), "away") as here:
            here.roll("install", small("job"), {"run": {"steps": 1}})
            here.running()
            (server,) = [pid for name, pid in pids(plane) if name == "kube-apiserver"]
            timer = threading.Timer(0.5, os.kill, (server, signal.SIGSTOP))
            timer.start()
            try:
                with pytest.raises(MissingToolError) as caught:
                    upgrade_for_ever(here)
                time.sleep(20)
            finally:
                timer.cancel()
                os.kill(server, signal.SIGCONT)
            assert len(str(caught.value).splitlines()) <= 2
            wait_for(lambda: answers(here), what="that the server is back", timeout=180)
            change = {"spec": {"leaseDurationSeconds": 1}}
            here.cluster.patch(LEASE, lease_name(RELEASE), change, namespace=here.namespace)
            here.roll("upgrade", small("job"), {"run": {"steps": 2}})
            whole(here, 2)


def upgrade_for_ever(here: Site) -> None:
    while True:
        here.roll("upgrade", small("job"), {"run": {"steps": time.monotonic_ns()}})


def answers(here: Site) -> bool:
    try:
        here.cluster.list(LEASE, namespace=here.namespace)
    except ChartgenError:
        return False
    return True


def pids(plane: ControlPlane) -> list[tuple[str, int]]:
    return list(plane.processes.pids.items())


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())


def restate(here: Site, status: str, description: str, *, copy: bool = False) -> None:
    """Leave the last revision, or a next one like it, as a killed Helm would."""
    record = here.records()[-1]
    stored = here.cluster.get(SECRET, record.stored, here.namespace)
    assert stored
    kept = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(stored["data"]["release"]))))
    kept["info"] |= {"status": status, "description": description}
    version = kept["version"] = record.revision + copy
    text = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(kept).encode()))).decode()
    labels = {**stored["metadata"]["labels"], "status": status, "version": str(version)}
    name = record.stored.rpartition(".v")[0] + f".v{version}"
    metadata = {"name": name, "namespace": here.namespace, "labels": labels}
    item = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": stored["type"],
        "metadata": metadata,
        "data": {"release": text},
    }
    here.cluster.apply([item])


def webhook(here: Site) -> dict[str, Any]:
    """A webhook of JobSets in this namespace at which nobody answers."""
    rule = {
        "apiGroups": ["jobset.x-k8s.io"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["jobsets"]
    }  # fmt: skip
    hook = {
        "name": "down.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": here.namespace}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"down-{here.namespace}"},
        "webhooks": [hook],
    }


def test_charts_of_a_kind_without_run_are_installed_alike(here: Site) -> None:
    """A setup chart runs nothing; it is changed in place, and what it no longer has is removed."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Values.name }}"}, "data": {"a": "b"}}
    head = "apiVersion: v2\nname: tiny\nversion: 0.1.0\n"
    chart = Chart("tiny", {"Chart.yaml": head, "values.yaml": "name: a\n", "templates/c.yaml": json.dumps(config)})
    here.roll("install", chart)
    here.roll("upgrade", chart, {"name": "b"})
    assert [item for item in here.left() if item.startswith("ConfigMap")] == ["ConfigMap b"]
    here.uninstall()
    assert here.left() == []
