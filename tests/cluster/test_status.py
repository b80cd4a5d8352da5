"""Readouts on the real control plane: every reason to wait, every way to fail, in the words that people read."""

from __future__ import annotations

import base64
import gzip
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import manifests
import pytest
from answers import answer
from facts import has
from guests import allow, log_in, rule
from kubelet import Kubelet, end_container, kubelet_of, lose_machine, pod_names
from mini_charts import CHART_YAML
from proxy import Answer, faults_of
from userlib import chartgen

from chartgen.errors import ChartgenError, Problem
from chartgen.helm.chart import Chart
from chartgen.kube import CLUSTER_QUEUE, JOB, LEASE, NAMESPACE, POD, SECRET, Object, connect, wait_for
from chartgen.kube.workloads import find_runs
from chartgen.metrics.figures.facts import Facts
from chartgen.metrics.figures.timeline import Cost, cost_of
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.releases import helm_release
from chartgen.releases.helm_release import Place
from chartgen.releases.history import RevisionRecord, read_records
from chartgen.releases.lock import Lock, lease_name
from chartgen.releases.state import State
from chartgen.releases.status.failure import BROKEN, FirstFailure, broken_machine
from chartgen.releases.status.messages import why_rejected
from chartgen.releases.status.overview import HEADS, glance, lay_out, overview_rows
from chartgen.releases.status.pending import unplaced
from chartgen.releases.status.readout import Readout, Revision, read_readout
from chartgen.releases.status.text import describe_readout, since, summarize

pytestmark = pytest.mark.engines
POOL = "told"
WAIT = "wait, ask for fewer `nodes`, or set `queue.priorityClass`"


@pytest.fixture(scope="module")
def machines(plane: ControlPlane) -> Iterator[ControlPlane]:
    found = create_machines(plane.cluster, [manifests.pool(POOL, 4)])
    queues = [*manifests.queue(POOL, 32), *manifests.queue("told-small", 8, topology=False)]
    for item in queues:
        if item["kind"] == "ResourceFlavor" and item["metadata"]["name"] == "told-small":
            item["spec"]["nodeLabels"] = {"pool": POOL}
    plane.cluster.apply([*queues, manifests.volcano_queue("told-narrow", 16)])
    yield plane
    delete_machines(plane.cluster, found)


@pytest.fixture
def run(machines: ControlPlane) -> Iterator[Callable[[Object], str]]:
    """Starts runs; removes them at the end."""
    made: list[Object] = []

    def start(item: Object) -> str:
        made.append(item)
        machines.cluster.apply([item])
        return str(item["metadata"]["name"])

    yield start
    for item in made:
        namespace = item["metadata"]["namespace"]
        machines.cluster.delete_object(item, namespace=namespace, foreground=True)
        left = {"app.kubernetes.io/instance": item["metadata"]["name"]}
        wait_for(
            lambda: not machines.cluster.list(POD, namespace=namespace, labels=left),  # noqa: B023 - used at once
            what="that the pods are gone",
            timeout=180,
        )


def until(plane: ControlPlane, release: str, check: Callable[[Readout], Any], namespace: str = "default") -> Readout:
    """Read until something holds."""
    found: list[Readout] = []

    def holds() -> bool:
        found[:] = [read_readout(plane.cluster, release, namespace)]
        return bool(check(found[0]))

    try:
        wait_for(holds, what="it", timeout=180, interval=0.3)
    except ChartgenError:
        raise AssertionError(describe_readout(found[0])) from None
    return found[0]


def cause(plane: ControlPlane, release: str, start: str = "", namespace: str = "default") -> Problem:
    """Wait for a cause that begins so."""
    found = until(plane, release, lambda it: any(each.message.startswith(start) for each in it.causes), namespace)
    return next(each for each in found.causes if each.message.startswith(start))


def running(plane: ControlPlane, release: str) -> Readout:
    return until(plane, release, lambda it: it.phase == "running")


def test_event_of_a_wait_is_told_while_nothing_runs(run: Any, machines: ControlPlane) -> None:
    release = run(manifests.jobset("evented", 2, queue=POOL, pool=POOL))
    until(machines, release, lambda it: it.first_event or it.phase == "running")
    assert running(machines, release).first_event == ""
    waits = run(manifests.jobset("wide", 2, queue="told-small", pool=POOL))
    assert until(machines, waits, lambda it: it.first_event).phase == "queued"


def test_status_of_a_release_that_is_not_there(machines: ControlPlane) -> None:
    env = {"KUBECONFIG": str(machines.kubeconfig)}
    for form in ("text", "json"):
        assert chartgen("status", "nothere", "--output", form, env=env).exit_code == 1
    assert chartgen("status", "nothere", "--follow", env=env).exit_code == 1


# Queues


def test_a_full_queue(run: Any, machines: ControlPlane) -> None:
    running(machines, run(manifests.jobset("holder", 3, queue=POOL, pool=POOL)))
    run(manifests.jobset("waits", 2, queue=POOL, pool=POOL))
    expected = Problem(f"queue {POOL}: 8 more nvidia.com/gpu needed than flavor {POOL} has free", hint=WAIT)
    assert cause(machines, "waits", f"queue {POOL}: 8 more") == expected
    time.sleep(1.1)  # Kueue orders by the time of creation, which has whole seconds
    run(manifests.jobset("later", 4, queue=POOL, pool=POOL))
    found = until(machines, "later", lambda it: len(it.causes) == 2 and " more " in it.causes[0].message)
    assert found.phase == "queued"
    assert [each.message for each in found.causes] == [
        has(f"{POOL} 24 nvidia.com/gpu {POOL}"),
        has(f"{POOL} 1 waiting 0"),
    ]
    assert found.since
    assert found.runs == ("JobSet later",)


def test_a_run_larger_than_its_queue_waits_in_vain(run: Any, machines: ControlPlane) -> None:
    run(manifests.jobset("giant", 9, queue=POOL, pool=POOL))
    assert cause(machines, "giant", f"queue {POOL}: it") == Problem(
        has(f"{POOL} 72 nvidia.com/gpu {POOL} 32"),
        hint=has("waiting nodes"),
    )


def test_a_queue_that_does_not_exist(run: Any, machines: ControlPlane) -> None:
    run(manifests.jobset("lost-queue", 1, queue="nosuch"))
    assert cause(machines, "lost-queue", "queue nosuch: no LocalQueue") == Problem(
        has("nosuch LocalQueue nosuch"), hint=has("kubectl get localqueues queue.name")
    )


def test_a_stopped_queue_drains_a_running_run(run: Any, machines: ControlPlane) -> None:
    running(machines, run(manifests.jobset("drained", 1, queue="told-small", pool=POOL)))
    machines.cluster.patch(CLUSTER_QUEUE, "told-small", {"spec": {"stopPolicy": "HoldAndDrain"}})
    stopped = Problem(
        "queue told-small: ClusterQueue told-small is stopped (stopPolicy HoldAndDrain)",
        hint="ask who stopped it; `kubectl patch clusterqueue told-small` with spec.stopPolicy None starts it",
    )
    try:
        found = until(machines, "drained", lambda it: it.phase == "queued" and stopped in it.causes and not it.pods)
        assert found.causes == (
            Problem(
                has("evicted ClusterQueueStopped The ClusterQueue stopped"),
                hint="it starts again once it is admitted, from its newest checkpoint if it saves any",
            ),
            stopped,
        )
    finally:
        machines.cluster.patch(CLUSTER_QUEUE, "told-small", {"spec": {"stopPolicy": "None"}})
    running(machines, "drained")


def test_a_run_of_higher_priority_takes_the_place(run: Any, machines: ControlPlane) -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "told-high"}}
    machines.cluster.apply([{**high, "value": 1000}])
    change = {"spec": {"preemption": {"withinClusterQueue": "LowerPriority"}}}
    machines.cluster.patch(CLUSTER_QUEUE, "told-small", change)
    running(machines, run(manifests.jobset("humble", 1, queue="told-small", pool=POOL)))
    proud = manifests.jobset("proud", 1, queue="told-small", pool=POOL)
    proud["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["priorityClassName"] = "told-high"
    running(machines, run(proud))
    text = "it was evicted (Preempted): another run has taken its place, by prioritization in the ClusterQueue"
    assert cause(machines, "humble", "it was evicted").message == text
    assert cause(machines, "humble", "queue told-small: 8 more nvidia.com/gpu").hint == WAIT
    machines.cluster.delete_object(high)


def test_volcano_queues(run: Any, machines: ControlPlane) -> None:
    run(manifests.volcano_job("squashed", 4, queue="told-narrow", pool=POOL))
    found = cause(machines, "squashed", "queue 'told-narrow': its")
    assert found.message == has("told-narrow nvidia.com/gpu 5 pods")
    assert found.hint == "wait, ask for fewer `nodes`, or a larger queue"


# The scheduler


def test_what_the_scheduler_cannot_place(run: Any, machines: ControlPlane) -> None:
    tainted = manifests.job("tainted", 2, pool=POOL)
    tainted["spec"]["template"]["spec"]["tolerations"] = []
    run(tainted)
    found = cause(machines, "tainted", "2 pods")
    assert found.message.endswith("have a taint that the pods do not tolerate (nvidia.com/gpu=present:NoSchedule)")
    assert found.hint.startswith("add it to `tolerations`, or remove it with `kubectl taint nodes`")
    run(manifests.job("fat", 1, gpus=9, pool=POOL))
    found = cause(machines, "fat", "1 pod ")
    assert "4 have too little free nvidia.com/gpu" in found.message
    assert "wait until other work ends, ask for fewer `nodes`, or add machines" in found.hint


@pytest.mark.parametrize("name", ["nowhere", "unbound"])
def test_a_claim_that_is_absent_or_unbound(name: str, run: Any, machines: ControlPlane) -> None:
    storage = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Ti"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "unbound"}}
    machines.cluster.apply([{**claim, "spec": {**storage, "storageClassName": "never"}}], namespace="default")
    job = manifests.job(f"claims-{name}", 2, pool=POOL)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    job["spec"]["template"]["spec"]["volumes"] = [volume]
    run(job)
    why = "no claim nowhere" if name == "nowhere" else "a claim of the pods is not bound to a volume"
    assert cause(machines, f"claims-{name}", "2 pods") == Problem(
        has(f"2 pods {why}"),
        hint=has("kubectl describe pvc"),
    )
    machines.cluster.delete_object(claim, namespace="default")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            "8 nodes are available: 4 Insufficient nvidia.com/gpu, 4 node(s) had untolerated taint {a: b}.",
            "of 8 machines 4 have too little free nvidia.com/gpu, 4 have a taint that the pods do not tolerate {a: b}",
        ),
        (
            "3 nodes are available: 3 node(s) didn't have free ports for the requested pod ports.",
            "of 3 machines 3 have the network port in use",
        ),
        (
            "3 nodes are available: 1 node(s) were unschedulable, 2 Too many pods.",
            "of 3 machines 2 run their maximum of pods, 1 are cordoned",
        ),
        (
            "3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.",
            "of 3 machines 3 still run pods of another run of this release",
        ),
        (
            "3 nodes are unavailable: 3 node(s) didn't match Pod's node affinity/selector.",
            "of 3 machines 3 have other labels than the pods ask for",
        ),
    ],
)
def test_words_of_the_scheduler(said: str, why: str) -> None:
    for end in (
        "",
        " preemption: 0/8 nodes are available: 8 No preemption victims found.",
        " no new claims to deallocate",
    ):
        assert unplaced(f"0/{said}{end}", 2).message == has(f"2 pods {why}")
    assert unplaced("gang is not ready", 1).message == has("1 ready")


# Permissions


def test_a_user_who_may_read_only_the_namespace(run: Any, machines: ControlPlane, tmp_path: Path) -> None:
    allow(machines, "default", "told-reader", [rule("*", "*", verbs="get,list")])
    config = log_in(machines, "default", "told-reader", tmp_path / "config")
    item = manifests.job("own", 1, pool=POOL)
    item["spec"]["template"]["spec"]["tolerations"] = []
    cause(machines, run(item), "1 pod ")
    machines.cluster.patch(CLUSTER_QUEUE, "told-small", {"spec": {"stopPolicy": "Hold"}})
    cause(
        machines,
        run(manifests.jobset("own-queued", 1, queue="told-small", pool=POOL)),
        "queue told-small: ClusterQueue",
    )
    with connect(kubeconfig=config) as cluster:
        (found,) = read_readout(cluster, "own").causes
        assert found.message.endswith("have a taint that the pods do not tolerate")
        (found,) = read_readout(cluster, "own-queued").causes
        assert found.message == "queue told-small: ClusterQueue told-small is inactive"
    machines.cluster.patch(CLUSTER_QUEUE, "told-small", {"spec": {"stopPolicy": "None"}})


# The API server, the kubelet, the controllers


@pytest.mark.parametrize("kind", ["job", "jobset", "pytorchjob", "mpijob", "volcano_job"])
def test_a_full_quota_of_the_namespace(kind: str, run: Any, machines: ControlPlane) -> None:
    namespace = f"tight-{kind.replace('_', '-')}"
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus", "namespace": namespace}}
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    machines.cluster.apply([place, {**quota, "spec": {"hard": {"requests.nvidia.com/gpu": "0"}}}])
    run(getattr(manifests, kind)("full", 2, pool=POOL, namespace=namespace))
    assert cause(machines, "full", "quota gpus", namespace) == Problem(
        has("gpus requests.nvidia.com/gpu=8 requests.nvidia.com/gpu=0 requests.nvidia.com/gpu=0"),
        hint=has("kubectl describe resourcequota gpus"),
    )
    machines.cluster.delete(NAMESPACE, namespace)


def test_a_jobset_that_was_accepted_but_never_started(run: Any, machines: ControlPlane) -> None:
    run(manifests.jobset("accepted", 2, pool=POOL, mounts=True))
    text = 'the API server refuses it: spec.template.spec.containers[0].volumeMounts[0].name: Not found: "nowhere"'
    # a controller under load says it late
    found = until(machines, "accepted", lambda it: text in [cause.message for cause in it.causes])
    assert found.phase == "starting"


@pytest.mark.parametrize(
    ("kind", "path", "who"),
    [
        ("job", (), "kube-controller-manager does not run, or cannot write to it"),
        ("jobset", (), "the JobSet controller does not run, or cannot write to it"),
        ("pytorchjob", ("runPolicy",), "the training operator does not run, or cannot write to it"),
        ("mpijob", ("runPolicy",), "the MPI operator does not run, or cannot write to it"),
    ],
)
def test_a_run_that_nobody_takes_up(
    kind: str, path: tuple[str, ...], who: str, run: Any, machines: ControlPlane
) -> None:
    item = getattr(manifests, kind)(f"orphan-{kind}", 1, pool=POOL)
    spec = item["spec"]
    for key in path:
        spec = spec[key]
    spec["managedBy"] = "kueue.x-k8s.io/multikueue"  # so that its own controller leaves it alone
    run(item)
    found = cause(machines, f"orphan-{kind}", "no controller")
    assert found.message == has(f"{item['kind']} orphan-{kind} {who}")
    assert found.hint.startswith("see `kubectl get pods --namespace ")


def test_a_volcano_job_that_nobody_takes_up(run: Any, machines: ControlPlane) -> None:
    controller = machines.processes.pids["volcano-controller-manager"]
    os.kill(controller, signal.SIGSTOP)
    try:
        run(manifests.volcano_job("orphan-volcano", 1, pool=POOL))
        found = cause(machines, "orphan-volcano", "no controller")
    finally:
        os.kill(controller, signal.SIGCONT)
    text = "no controller is handling Job orphan-volcano: Volcano's controller does not run, or cannot write to it"
    assert found == Problem(text, hint="see `kubectl get pods --namespace volcano-system`")
    running(machines, "orphan-volcano")


def test_an_image_that_cannot_be_pulled(run: Any, machines: ControlPlane) -> None:
    running(machines, run(manifests.job("unpulled", 2, pool=POOL)))
    message = 'Back-off pulling image "registry.invalid/train:1"'
    stuck(machines, "unpulled", {"reason": "ImagePullBackOff", "message": message})
    found = until(machines, "unpulled", lambda it: it.phase == "starting")
    text = f"2 pods cannot pull the image registry.invalid/train:1 (ImagePullBackOff): {message}"
    assert found.causes == (Problem(text, hint=has("imagePullSecrets")),)
    message = 'secret "hub" not found'
    stuck(machines, "unpulled", {"reason": "CreateContainerConfigError", "message": message})
    text = f"2 pods cannot start (CreateContainerConfigError): {message}"
    hint = "create the Secret or ConfigMap that it names in this namespace"
    assert cause(machines, "unpulled", "2 pods cannot start") == Problem(text, hint=hint)


def stuck(plane: ControlPlane, release: str, waiting: dict[str, str]) -> None:
    """Report, as a kubelet does, that the containers of all pods wait."""
    status = {"name": "train", "ready": False, "restartCount": 0, "image": "registry.invalid/train:1", "imageID": ""}
    for name in pod_names(plane.cluster, release):
        change = {"phase": "Pending", "containerStatuses": [{**status, "state": {"waiting": waiting}}]}
        plane.cluster.patch(POD, name, {"status": change}, namespace="default", subresource="status")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ('admission webhook "vpod.kb.io" denied the request: no', "webhook vpod.kb.io refuses it: no"),
        (
            'failed calling webhook "vpod.kb.io": connection refused',
            "webhook vpod.kb.io does not answer: connection refused",
        ),
        (
            'pods "a" is forbidden: error looking up service account ns/x: serviceaccount "x" not found',
            "no service account x in the namespace",
        ),
        (
            'pods "a" is forbidden: violates PodSecurity "restricted:latest": privileged',
            "the namespace allows only pods of level restricted:latest: privileged",
        ),
        ("something else", "something else"),
    ],
)
def test_words_of_the_api_server(message: str, text: str) -> None:
    assert why_rejected(message).message == text


# Running and its end


@pytest.fixture
def kubelet(machines: ControlPlane) -> Iterator[Kubelet]:
    with kubelet_of(machines, [f"{POOL}-{number}" for number in range(4)]) as found:
        yield found


def test_a_running_run_says_its_step_and_speed(kubelet: Kubelet, run: Any, machines: ControlPlane) -> None:
    running(machines, run(manifests.jobset("steps", 2, pool=POOL)))
    first, last = pod_names(machines.cluster, "steps")
    assert read_readout(machines.cluster, "steps").progress == ""
    kubelet.write(first, "Training epoch 0, iteration 4/9 | train_step_timing in s: 3.5 |")
    assert read_readout(machines.cluster, "steps").progress == has("4 10 3.5 21")
    kubelet.write(last, " iteration       10/     100 | elapsed time per iteration (ms): 9100.0 |")
    found = read_readout(machines.cluster, "steps")
    assert found.progress == has("10 100 9.1 13 39")
    assert (found.ready, found.pods_expected, found.machines, found.gpus) == (2, 2, 2, 16)
    assert (found.restarts, found.causes, found.failure) == (0, (), None)


def test_a_machine_whose_log_does_not_come_is_said(kubelet: Kubelet, run: Any, machines: ControlPlane) -> None:
    running(machines, run(manifests.jobset("mute", 1, pool=POOL)))
    kubelet.close()
    found = read_readout(machines.cluster, "mute")
    kubelet.open()
    assert found.phase == "running"
    (pod,) = pod_names(machines.cluster, "mute")
    assert found.progress.startswith(f"unknown, the log of pod {pod} cannot be read: ")


ROOT_CAUSE = """\
Root Cause (first observed failure):
[0]:
  time      : 2026-01-01_00:00:00
  host      : machine
  rank      : 11 (local_rank: 3)
  exitcode  : 77 (pid: 4711)
  error_file: <N/A>
"""


def test_the_rank_that_failed_first(kubelet: Kubelet, run: Any, machines: ControlPlane) -> None:
    running(machines, run(manifests.jobset("broken", 2, pool=POOL)))
    _, second = pod_names(machines.cluster, "broken")
    machine = (machines.cluster.get(POD, second) or {})["spec"]["nodeName"]
    kubelet.write(second, *[f"line {number}" for number in range(20)], *ROOT_CAUSE.splitlines())
    end_container(machines.cluster, second, code=1, finishedAt="2026-01-01T00:00:00Z")
    found = until(machines, "broken", lambda it: it.phase == "failed").failure
    assert found
    assert found.what.startswith(
        f"rank 11 (pod {second} on machine {machine}) failed first: train ended with exit code 77"
    )
    assert (found.rank, found.exit_code, found.pod, found.machine) == (11, 77, second, machine)
    assert found.at == datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert found.lines == ("line 17", "line 18", "line 19", *ROOT_CAUSE.splitlines())
    (then,) = found.then
    assert then.startswith("JobSet broken has failed: jobset failed due to reaching max number of restarts")
    assert found.hint == has("chartgen logs broken --rank 11")
    # an upgrade notes the machine before it removes the run
    state = State("broken", "default", (), tuple(find_runs(machines.cluster, "broken", "default")))
    with Lock(machines.cluster, "broken", "default", "upgrade", lambda _: None) as lock:
        lock.note(**{BROKEN: broken_machine(machines.cluster, state)})
    again = read_readout(machines.cluster, "broken", "default").failure
    assert again
    assert again.hint == has(f"twice --avoid-node {machine} chartgen logs broken --rank 11")
    machines.cluster.delete(LEASE, lease_name("broken"), "default")


def test_a_secret_that_a_program_printed_is_not_shown(
    kubelet: Kubelet, run: Any, machines: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "hf_" + "aB3dE5gH7jK9" * 3
    running(machines, run(manifests.jobset("leak", 1, pool=POOL)))
    (pod,) = pod_names(machines.cluster, "leak")
    kubelet.write(pod, f"ValueError: 401 of {token}", "env DB_PASSWORD=hunter2-x")
    end_container(machines.cluster, pod, code=1, finishedAt="2026-01-01T00:00:00Z")
    failure = until(machines, "leak", lambda it: it.phase == "failed").failure
    assert failure
    assert token in str(failure.lines), "it is among what is quoted"
    monkeypatch.setenv("KUBECONFIG", str(machines.kubeconfig))
    shown = {form: chartgen("status", "leak", "--output", form).output for form in ("text", "json")}
    shown["wait"] = chartgen("wait", "leak").output
    for form, text in shown.items():
        assert "ValueError: 401 of" in text, form
        assert token not in text, form
        assert "hunter2-x" not in text, form


def test_a_program_that_ran_out_of_memory(run: Any, machines: ControlPlane) -> None:
    running(machines, run(manifests.pytorchjob("oom", 1, pool=POOL)))
    (pod,) = pod_names(machines.cluster, "oom")
    end_container(machines.cluster, pod, code=137, container="pytorch", reason="OOMKilled", message="killed")
    found = until(machines, "oom", lambda it: it.phase == "failed").failure
    assert found
    assert found.what.endswith("failed first: pytorch ended with exit code 137 (OOMKilled)")
    assert found.hint == has("launchers.<name>.resources")
    assert found.lines == ("killed",)
    assert found.then == (has("PyTorchJob oom failed Job oom failed"),)


def test_a_finished_run(run: Any, machines: ControlPlane) -> None:
    job = manifests.jobset("done", 1, pool=POOL)
    spec = job["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    spec["metadata"]["annotations"] = {"pod-complete.stage.kwok.x-k8s.io/delay": "1s"}
    run(job)
    found = until(machines, "done", lambda it: it.phase == "finished")
    assert (found.causes, found.failure) == ((), None)
    assert describe_readout(found, now=found.since and found.since + timedelta(minutes=3)).startswith(
        "done: finished 3 min 0 s ago"
    )


def test_a_machine_that_dies_under_a_jobset(run: Any, machines: ControlPlane) -> None:
    item = manifests.jobset("dying-js", 2, pool=POOL)
    item["spec"]["failurePolicy"] = {"maxRestarts": 1}
    running(machines, run(item))
    pod, machine = lose_a_machine(machines, "dying-js")
    found = until(machines, "dying-js", lambda it: it.phase == "running" and it.restarts == 1 and it.failure)
    assert found.failure == taken_away(found, pod, machine, "JobSet dying-js was started again 1 of at most 1 times")


def test_a_machine_that_dies_under_a_volcano_job(run: Any, machines: ControlPlane) -> None:
    running(machines, run(manifests.volcano_job("dying-vj", 2, restarts=1, pool=POOL)))
    lose_a_machine(machines, "dying-vj")
    found = until(machines, "dying-vj", lambda it: it.phase == "running" and it.restarts == 1 and it.failure)
    assert found.failure
    assert found.failure.what.endswith("was taken away: its machine was lost or drained")
    assert found.failure.then == (has("dying-vj 1 1"),)


def test_a_machine_that_dies_under_a_pytorchjob(run: Any, machines: ControlPlane) -> None:
    running(machines, run(manifests.pytorchjob("dying-pt", 2, pool=POOL)))
    pod, machine = lose_a_machine(machines, "dying-pt")
    found = until(machines, "dying-pt", lambda it: it.phase == "failed")
    then = "PyTorchJob dying-pt has failed: PyTorchJob dying-pt is failed because 1 Worker replica(s) failed."
    assert found.failure == taken_away(found, pod, machine, then)


def lose_a_machine(plane: ControlPlane, release: str) -> tuple[str, str]:
    """Let the machine of a run's last pod die; give both. The machine is repaired when its pods are gone."""
    pod = pod_names(plane.cluster, release)[-1]
    machine = (plane.cluster.get(POD, pod) or {})["spec"]["nodeName"]
    before = (plane.cluster.get(POD, pod) or {})["metadata"]["uid"]
    lose_machine(plane.cluster, machine)

    def gone() -> bool:
        found = plane.cluster.get(POD, pod)
        return found is None or found["metadata"]["uid"] != before

    wait_for(gone, what="that its pod goes", timeout=180)
    create_machines(plane.cluster, [manifests.pool(POOL, 4)])
    return pod, machine


def taken_away(readout: Readout, pod: str, machine: str, then: str) -> FirstFailure:
    assert readout.failure
    return FirstFailure(
        f"pod {pod} on machine {machine} was taken away: its machine was lost or drained",
        pod=pod,
        machine=machine,
        at=readout.failure.at,
        then=(then,),
        hint=f"see `kubectl describe node {machine}`",
    )


def test_an_evicted_pod_leaves_no_trace_and_that_is_said(run: Any, machines: ControlPlane) -> None:
    running(machines, run(manifests.jobset("evicted", 2, pool=POOL)))
    pod = pod_names(machines.cluster, "evicted")[1]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"}}
    machines.cluster._send("POST", POD.path("default", pod, "eviction"), None, body)
    found = until(machines, "evicted", lambda it: it.phase == "failed").failure
    assert found
    assert found.what == has("failed first evicted")
    assert found.then[0].startswith("JobSet evicted has failed: jobset failed due to reaching max number of restarts")


def test_a_release_that_does_not_exist(machines: ControlPlane) -> None:
    assert read_readout(machines.cluster, "nobody") == Readout(
        "nobody",
        "default",
        "absent",
        causes=(
            Problem(
                "no release nobody in namespace default",
                hint="`helm list --all-namespaces` shows all releases",
            ),
        ),
    )


def test_a_readout_in_lines() -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    readout = Readout(
        "my-run",
        "ml",
        "running",
        since=now - timedelta(minutes=65),
        revision=Revision(3, "gke-a3mega-0.1.0", "deployed", now),
        runs=("JobSet my-run-1a2b3c4d",),
        pods_expected=32,
        pods=32,
        ready=31,
        machines=32,
        gpus=256,
        restarts=1,
        container_restarts=2,
        first_event="2026-01-01 10:55:00 UTC Started: Admitted by clusterQueue gpu",
        progress="iteration 10 of 100, 9.1 s each",
        causes=(Problem("one thing", hint="do another"),),
        failure=FirstFailure("pod a was taken away", lines=("a line",), then=("it was started again",), hint="look"),
    )
    assert describe_readout(readout, now=now).splitlines() == [
        "my-run: running for 1 h 5 min",
        "  release     revision 3 of gke-a3mega-0.1.0, deployed 2026-01-01 12:00 UTC",
        "  run         JobSet my-run-1a2b3c4d",
        "  pods        31 of 32 ready, on 32 machines, 256 GPUs",
        "  restarts    of the whole run 1, of single containers 2",
        "  progress    iteration 10 of 100, 9.1 s each",
        "  first event 2026-01-01 10:55:00 UTC Started: Admitted by clusterQueue gpu",
        "  why         one thing",
        "              what to do: do another",
        "  lost        pod a was taken away",
        "              what to do: look",
        "              | a line",
        "  then        it was started again",
    ]
    line = "running; 31 of 32 pods ready; started again once; iteration 10 of 100, 9.1 s each; one thing"
    assert summarize(readout) == f"{line}; pod a was taken away"
    assert "iteration" not in summarize(readout, progress=False)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min 0 s"), (7300, "2 h 1 min"), (200000, "2 d 7 h"), (-5, "0 s")],
)
def test_how_long_ago(seconds: int, text: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert since(now - timedelta(seconds=seconds), now) == text


# Helm's record


CHART = Chart(
    "tiny",
    {
        "Chart.yaml": CHART_YAML,
        "values.yaml": "kind: Job\n",
        "templates/run.yaml": """\
{{- if eq .Values.kind "Job" }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-1a2b
  labels:
    app.kubernetes.io/instance: {{ .Release.Name }}
spec:
  template:
    metadata:
      labels:
        app.kubernetes.io/instance: {{ .Release.Name }}
    spec:
      restartPolicy: Never
      nodeSelector:
        pool: told
      tolerations:
        - operator: Exists
      containers:
        - name: train
          image: registry.invalid/train:1
{{- end }}
""",
    },
)


@pytest.fixture
def installed(machines: ControlPlane) -> Iterator[Callable[..., RevisionRecord]]:
    """Installs the tiny chart as release `kept` and gives Helm's record; removes it at the end."""
    place = Place("default", machines.kubeconfig)

    def install(**values: str) -> RevisionRecord:
        helm_release.install(CHART, "kept", dict(values), place)
        return read_records(machines.cluster, "kept", "default")[-1]

    yield install
    helm_release.uninstall("kept", place)
    wait_for(lambda: not find_runs(machines.cluster, "kept", "default"), what="that it is gone", timeout=180)


def test_all_releases_at_a_glance(machines: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of chartgen's charts: not a setup chart, not a chart of somebody else, and the last revision alone."""
    monkeypatch.setenv("KUBECONFIG", str(machines.kubeconfig))
    machines.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-b"}}])
    ours = f"{CHART_YAML}annotations: {{chartgen/target: onprem-p8000}}\n"
    setup = f"{CHART_YAML}annotations: {{chartgen/target: onprem-p8000, chartgen/setup: 'true'}}\n"
    made = [
        ("one", "default", ours),
        ("two", "team-b", ours),
        ("base", "default", setup),
        ("theirs", "default", CHART_YAML),
    ]
    try:
        for name, namespace, meta in made:
            chart = replace(CHART, files={**CHART.files, "Chart.yaml": meta})
            helm_release.install(chart, name, {}, Place(namespace, machines.kubeconfig))
        helm_release.upgrade(
            replace(CHART, files={**CHART.files, "Chart.yaml": ours}),
            "one",
            {"a": 1},
            Place("default", machines.kubeconfig),
        )
        running(machines, "one")
        until(machines, "two", lambda it: it.phase == "running", "team-b")
        found = answer(chartgen("status", "-A", "--output", "json").stdout)["releases"]
        assert [(each["namespace"], each["release"], each["revision"]["number"]) for each in found] == [
            ("default", "one", 2),
            ("team-b", "two", 1),
        ]
        head, *rows = chartgen("status", "-n", "team-b").stdout.splitlines()
        assert head.split()[:3] == ["release", "chart", "phase"]
        assert [row.split()[:3] for row in rows] == [["two", "tiny-0.1.0", "running"]]
        assert len(chartgen("status", "-A").stdout.splitlines()) == 3
        commands = (("status",), ("top", "--count", "1"))
        ran = [chartgen(*argv, "-A", "--price", "9", "--output", "json").stdout for argv in commands]
        first, *others = (answer(text)["releases"] for text in ran)
        assert {"gpuHours", "cost"} <= first[0].keys()
        grown = {"gpuHours": 0, "cost": 0}  # since the last look
        for each in others:
            assert [one | grown for one in each] == [one | grown for one in first]
        looks = chartgen("top", "-A", "--every", "0s", "--count", "2", "--output", "json").stdout.splitlines()
        assert [[each["release"] for each in json.loads(look)["releases"]] for look in looks] == [["one", "two"]] * 2
    finally:
        for name, namespace, _ in made:
            helm_release.uninstall(name, Place(namespace, machines.kubeconfig))
        machines.cluster.delete(NAMESPACE, "team-b")
    assert "no release" in chartgen("status", "-n", "default").stdout
    assert chartgen("status", "--follow").exit_code == chartgen("status", "one", "-A").exit_code == 2


def test_a_cluster_that_never_answers_fails_the_live_table(
    machines: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One look that succeeds makes a good end, also when the last one fails."""
    broken: list[str] = []

    def fault(method: str, path: str) -> Answer | None:  # noqa: ARG001
        if "/secrets" not in path:
            return None
        broken.append(path)
        return Answer(503, {"message": "etcd leader changed"}) if len(broken) in (1, 2, 4) else None

    with faults_of(machines, tmp_path, fault) as (kubeconfig, _):
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        argv = ("top", "-n", "kube-public", "--every", "0s", "--count", "2", "--output", "json")
        never, once = chartgen(*argv), chartgen(*argv)
    assert (never.exit_code, never.stdout) == (1, "")
    assert "etcd leader changed" in never.stderr.splitlines()[-1]
    assert (once.exit_code, len(once.stdout.splitlines())) == (0, 1)
    assert "etcd leader changed" in once.stderr


def test_a_narrow_screen_shows_fewer_columns() -> None:
    row = ("team-b", "my-long-release", "gke-a3mega-0.1.0", "running", "3 h 2 min", "32", "256", "776.5", "", "x" * 90)
    wide, narrow, whole = (lay_out([row], columns=columns) for columns in (200, 80, None))
    assert wide == whole
    heads = ["namespace", "release", "phase", "for", "GPUs", "progress,", "or", "why", "it", "waits"]
    assert narrow[0].split() == heads
    assert {len(narrow[1]), len(wide[1])} == {80, len(whole[1])}
    assert lay_out([row], HEADS[1:], 80)[0].startswith("release  ")


def test_gpu_hours_and_cost_count_while_a_run_runs() -> None:
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    now = start + timedelta(minutes=90)
    run = Readout("r", "default", "running", since=start, gpus=256, machines=32)
    found = glance(run, now, 98.0)
    (row,) = overview_rows([found], now=now)
    shown = dict(zip(HEADS, row, strict=True))
    assert (shown["GPU-hours"], shown["cost"]) == ("384.0", "4,704.00")
    cost = cost_of(98.0, Facts({"machines": 32}), 90 * 60.0, None)
    assert isinstance(cost, Cost)
    assert cost.total == found.cost, "as `chartgen metrics --price` has it"
    assert glance(run, now).cost is None
    ahead = replace(run, since=now + timedelta(minutes=30))  # by the clock of the cluster
    for other in (replace(run, phase="finished"), replace(run, gpus=0), replace(run, since=None), ahead):
        assert (glance(other, now, 98.0).gpu_hours, glance(other, now, 98.0).cost) == (None, None)


def test_a_leftover_of_another_revision(installed: Callable[..., RevisionRecord], machines: ControlPlane) -> None:
    record = installed()
    found = running(machines, "kept")
    assert found.revision == Revision(1, "tiny-0.1.0", "deployed", record.updated)
    assert (found.runs, found.causes) == (("Job kept-1a2b",), ())
    left = manifests.job("kept", 1, pool=POOL, gpus=0)
    left["metadata"]["name"] = "kept-old"
    machines.cluster.apply([left])
    text, hint = (
        "Job kept-old is left over from another revision",
        "the next `chartgen upgrade` or `chartgen uninstall` removes it",
    )
    assert cause(machines, "kept", "Job kept-old") == Problem(text, hint=hint)
    machines.cluster.delete_object(left, foreground=True)


def test_a_run_that_is_gone_and_a_chart_without_one(
    installed: Callable[..., RevisionRecord], machines: ControlPlane
) -> None:
    installed()
    running(machines, "kept")
    machines.cluster.delete(JOB, "kept-1a2b", "default", foreground=True)
    found = until(machines, "kept", lambda it: it.gone)
    assert found.causes == (
        Problem(
            "its run is not in the cluster: it was deleted, or its time to live has passed",
            hint=has("chartgen upgrade run.again"),
        ),
    )
    helm_release.upgrade(CHART, "kept", {"kind": "none"}, Place("default", machines.kubeconfig))
    assert [cause.message for cause in read_readout(machines.cluster, "kept").causes] == ["chart tiny contains no job"]


@pytest.mark.parametrize(
    ("status", "command"),
    [("pending-install", "install"), ("pending-upgrade", "upgrade"), ("uninstalling", "uninstall")],
)
def test_a_command_that_was_killed(
    status: str, command: str, installed: Callable[..., RevisionRecord], machines: ControlPlane
) -> None:
    record = installed()
    set_status(machines, record, status)
    assert read_readout(machines.cluster, "kept").causes[0] == Problem(
        has(f"{status} command interrupted"),
        hint=has(f"chartgen {command}"),
    )
    set_status(machines, record, "deployed")


def set_status(plane: ControlPlane, record: RevisionRecord, status: str) -> None:
    """Leave Helm's record as a killed command does."""
    secret = plane.cluster.get(SECRET, record.stored, "default") or {}
    kept = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
    kept["info"]["status"] = status
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(kept).encode()))).decode()
    change = {"metadata": {"labels": {"status": status}}, "data": {"release": packed}}
    plane.cluster.patch(SECRET, record.stored, change, namespace="default")
