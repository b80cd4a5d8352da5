"""Logs by rank, on a real API server: the right pods, the right lines, none twice and none lost."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timezone
from typing import Any

import manifests
import pytest
from kubelet import Kubelet, end_container, kubelet_of, pod_names
from process_helpers import running
from rendered import rendered

from chartgen.errors import ChartgenError, MissingToolError, UsageError
from chartgen.kube import JOB, JOBSET, POD, Cluster, Object, wait_for
from chartgen.kube.workloads import gpus, program_of
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.rehearsal.verdict import wait_for_verdict
from chartgen.releases.status.follow import Seen
from chartgen.releases.status.logs import find_sources, follow_logs, read_pod_logs
from chartgen.releases.status.members import member
from chartgen.releases.status.ranks import Source
from chartgen.releases.status.readout import read_readout

MACHINES = 4
JOB_INDEX = "batch.kubernetes.io/job-completion-index"
WAITING = {
    "name": "train",
    "ready": False,
    "restartCount": 0,
    "image": "x",
    "imageID": "",
    "state": {"waiting": {"reason": "ContainerCreating"}},
}


@pytest.fixture(scope="module")
def machines(plane: ControlPlane) -> Iterator[ControlPlane]:
    names = create_machines(plane.cluster, [manifests.pool("talk", MACHINES)])
    yield plane
    delete_machines(plane.cluster, names)


@pytest.fixture
def kubelet(machines: ControlPlane) -> Iterator[Kubelet]:
    with kubelet_of(machines, [f"talk-{number}" for number in range(MACHINES)]) as found:
        yield found


@pytest.fixture
def started(machines: ControlPlane) -> Iterator[Any]:
    """Starts runs, and gives their pods by number; removes them at the end."""
    runs: list[Object] = []

    def start(run: Object) -> list[str]:
        runs.append(run)
        machines.cluster.apply([run])
        # Volcano learns late that the pods of the run before are gone, and says that there is no room
        wait_for(
            lambda: wait_for_verdict(machines.cluster, run["metadata"]["name"], timeout=180).ok,
            what="that its pods run",
            timeout=180,
        )
        return pod_names(machines.cluster, run["metadata"]["name"])

    yield start
    for run in runs:
        machines.cluster.delete_object(run, namespace="default", foreground=True)
        left = {"app.kubernetes.io/instance": run["metadata"]["name"]}
        wait_for(lambda: not machines.cluster.list(POD, labels=left), what="that the pods are gone", timeout=180)  # noqa: B023


def shown(cluster: Cluster, release: str, *, rank: str = "", machine: str = "", **options: Any) -> list[str]:
    sources = find_sources(cluster, release, "default", rank=rank, machine=machine)
    return [*read_pod_logs(cluster, sources, "default", progress=lambda _: None, **options)]


KINDS = {
    "jobset": lambda name: manifests.jobset(name, 2, pool="talk"),
    "job": lambda name: manifests.job(name, 2, pool="talk"),
    "pytorchjob": lambda name: manifests.pytorchjob(name, 2, pool="talk"),
    "mpijob": lambda name: manifests.mpijob(name, 2, pool="talk"),
    "volcano": lambda name: manifests.volcano_job(name, 2, pool="talk"),
}


@pytest.mark.engines
@pytest.mark.parametrize("kind", KINDS)
def test_a_rank_is_found_in_its_pod_and_its_lines_among_the_others(
    kind: str, kubelet: Kubelet, started: Any, plane: ControlPlane
) -> None:
    first, second = started(KINDS[kind](f"by-{kind}"))
    kubelet.write(first, "one", "[default0]:zero")
    kubelet.write(second, "two", "[default2]:ten", "[default3]:eleven", "[rank11]: Traceback", "[rank10]: Traceback")
    lines = shown(plane.cluster, f"by-{kind}", rank="11")
    if kind in ("mpijob", "volcano"):  # whose master prints what all ranks print
        assert lines == ["[ranks 8-15] two", "[rank 11] [default3]:eleven", "[rank 11] [rank11]: Traceback"]
    else:
        assert lines == ["two", "[default3]:eleven", "[rank11]: Traceback"]


@pytest.mark.engines
def test_the_first_and_the_last_rank_are_shown_by_default(kubelet: Kubelet, started: Any, plane: ControlPlane) -> None:
    pods = started(manifests.jobset("default", 3, pool="talk"))
    for number, pod in enumerate(pods):
        kubelet.write(pod, f"machine {number}", "[default0]:first", "[default7]:last")
    assert shown(plane.cluster, "default") == [
        "[ranks 0-7] machine 0",
        "[rank 0] [default0]:first",
        "[ranks 16-23] machine 2",
        "[rank 23] [default7]:last",
    ]
    assert shown(plane.cluster, "default", rank="last") == ["machine 2", "[default7]:last"]
    assert len(shown(plane.cluster, "default", rank="all")) == 9
    machine = (plane.cluster.get(POD, pods[1], "default") or {})["spec"]["nodeName"]
    assert shown(plane.cluster, "default", machine=machine) == ["machine 1", "[default0]:first", "[default7]:last"]
    assert shown(plane.cluster, "default", rank="0", tail=1) == ["[default0]:first"]
    assert shown(plane.cluster, "default", rank="0", tail=0) == []
    with pytest.raises(UsageError, match="no rank 24; the run has ranks 0 to 23"):
        shown(plane.cluster, "default", rank="24")
    with pytest.raises(UsageError, match="'first' is not a rank; give a number, last or all"):
        shown(plane.cluster, "default", rank="first")
    with pytest.raises(UsageError, match="no pod of the run is on machine talk-9; did you mean talk-"):
        shown(plane.cluster, "default", machine="talk-9")
    with pytest.raises(
        ChartgenError, match="release nobody has no pods in namespace default; `chartgen status nobody`"
    ):
        shown(plane.cluster, "nobody")


@pytest.mark.engines
def test_a_program_without_gpus_has_a_rank_for_each_pod(kubelet: Kubelet, started: Any, plane: ControlPlane) -> None:
    started(manifests.job("prep", 2, gpus=0, pool="talk"))
    found = plane.cluster.list(POD, namespace="default", labels={"app.kubernetes.io/instance": "prep"})
    pods = {(member(pod).index or 0): pod["metadata"]["name"] for pod in found}
    kubelet.write(pods[0], "shard 0")
    kubelet.write(pods[1], "shard 1")
    assert shown(plane.cluster, "prep", rank="1") == ["shard 1"]
    assert shown(plane.cluster, "prep") == ["[rank 0] shard 0", "[rank 1] shard 1"]


@pytest.mark.engines
def test_a_log_that_cannot_be_read_does_not_hide_the_others(
    kubelet: Kubelet, started: Any, plane: ControlPlane
) -> None:
    first, second = started(manifests.jobset("half", 2, pool="talk"))
    kubelet.write(first, "here")
    kubelet.waiting.add(second)
    said: list[str] = []
    sources = find_sources(plane.cluster, "half", "default")
    assert [*read_pod_logs(plane.cluster, sources, "default", progress=said.append)] == ["[ranks 0-7] here"]
    (text,) = said
    assert f'container "train" in pod "{second}" is waiting to start: ContainerCreating' in text
    with pytest.raises(ChartgenError, match="is waiting to start"):
        shown(plane.cluster, "half", rank="last")


@pytest.mark.engines
def test_a_log_that_stalls_is_not_taken_for_whole(
    kubelet: Kubelet, started: Any, plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = started(manifests.jobset("stalled", 2, pool="talk"))
    kubelet.write(first, "here")
    kubelet.write(second, "cut")
    kubelet.stall(second, monkeypatch)
    said: list[str] = []
    sources = find_sources(plane.cluster, "stalled", "default")
    lines = read_pod_logs(plane.cluster, sources, "default", progress=said.append)
    assert next(lines) == "[ranks 0-7] here"
    assert {*lines} <= {"[ranks 8-15] cut"}, "the API server may hold back what is short"
    (text,) = said
    assert f"the log of pod {second} " in text
    with pytest.raises(MissingToolError):
        shown(plane.cluster, "stalled", rank="last")
    assert read_readout(plane.cluster, "stalled").progress.startswith(
        f"unknown, the log of pod {second} cannot be read: "
    )
    end_container(plane.cluster, second)
    wait_for(lambda: read_readout(plane.cluster, "stalled").failure, what="that the run has failed", timeout=180)
    failure = read_readout(plane.cluster, "stalled").failure
    assert failure
    assert failure.lines[0].startswith("(the log cannot be read: ")


class Following:
    """`logs --follow` in a thread, and what it has printed."""

    def __init__(self, cluster: Cluster, release: str, rank: str = "0", **options: Any) -> None:
        self.lines: list[str] = []
        self.said: list[str] = []
        sources = find_sources(cluster, release, "default", rank=rank)
        stream = follow_logs(cluster, release, sources, "default", progress=self.said.append, **options)
        self._thread = threading.Thread(target=self._collect, args=(stream,), daemon=True)
        self._thread.start()

    def _collect(self, stream: Iterator[str]) -> None:
        for line in stream:
            self.lines.append(line)

    def has(self, *lines: str) -> None:
        wait_for(lambda: self.lines == [*lines], what=f"{[*lines]}, not {self.lines}", timeout=180)

    def ends(self) -> None:
        self._thread.join(180)
        assert not self._thread.is_alive()


@pytest.mark.engines
def test_a_lost_connection_neither_loses_nor_repeats_a_line(
    kubelet: Kubelet, started: Any, plane: ControlPlane
) -> None:
    (pod, _) = started(manifests.jobset("cut", 2, pool="talk"))
    kubelet.write(pod, "a", "b", "b", count=False)  # three lines of one nanosecond
    following = Following(plane.cluster, "cut")
    following.has("a", "b", "b")
    kubelet.drop()
    kubelet.write(pod, "b", "c", count=False)
    following.has("a", "b", "b", "b", "c")
    kubelet.write(pod, "d", second=10)
    kubelet.drop()
    kubelet.write(pod, "e", second=9.5)  # another stream of the container, written a little late
    following.has("a", "b", "b", "b", "c", "d", "e")
    kubelet.end(pod)
    end_container(plane.cluster, pod)
    following.ends()
    following.has("a", "b", "b", "b", "c", "d", "e")


@pytest.mark.engines
def test_a_machine_that_does_not_answer_is_said_once(kubelet: Kubelet, started: Any, plane: ControlPlane) -> None:
    (pod, _) = started(manifests.jobset("away", 2, pool="talk"))
    kubelet.write(pod, "before")
    following = Following(plane.cluster, "away")
    following.has("before")
    kubelet.close()
    wait_for(lambda: following.said, what="that the log is missed", timeout=180)
    time.sleep(3)
    kubelet.open()
    kubelet.write(pod, "after", second=60)
    following.has("before", "after")
    assert following.said == [f"the log of pod {pod} does not come, trying again"]
    end_container(plane.cluster, pod)
    kubelet.end(pod)
    following.ends()


@pytest.mark.engines
def test_the_unreadable_log_of_an_ended_pod_ends_it(kubelet: Kubelet, started: Any, plane: ControlPlane) -> None:
    (pod, _) = started(manifests.jobset("evicted", 2, pool="talk"))
    kubelet.waiting.add(pod)
    following = Following(plane.cluster, "evicted")
    end_container(plane.cluster, pod)
    following.ends()
    (text,) = following.said
    assert text.startswith(f"the log of pod {pod} cannot be read: ")


@pytest.mark.engines
def test_a_pod_of_another_task_is_no_replacement(kubelet: Kubelet, started: Any, plane: ControlPlane) -> None:
    """As for a RayJob, whose pods have no numbers: its head still runs after the submitter has ended."""
    started(task("ray", "submitter"))
    (submitter,) = running_pods(plane.cluster, "ray")
    made = plane.cluster.get(JOB, "ray", "default") or {}
    head = task("ray-head", "head", release="ray")
    head["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "ray", "uid": made["metadata"]["uid"]}
    ]
    plane.cluster.apply([head])
    wait_for(lambda: len(running_pods(plane.cluster, "ray")) == 2, what="both pods", timeout=180)
    kubelet.write(submitter, "output")
    following = Following(plane.cluster, "ray", rank="")
    following.has("output")
    kubelet.end(submitter)
    end_container(plane.cluster, submitter, code=0)
    following.ends()
    assert following.said == []


@pytest.mark.engines
@pytest.mark.parametrize("numbered", [True, False])
def test_pods_that_end_without_a_line_end_it(
    numbered: bool, kubelet: Kubelet, started: Any, plane: ControlPlane
) -> None:
    """Pods without numbers, such as Ray's workers, are not replacements of each other."""
    name = f"silent-{numbered}".lower()
    run = manifests.job(name, 2, pool="talk")
    run["spec"]["completionMode"] = "Indexed" if numbered else "NonIndexed"
    started(run)
    first, second = running_pods(plane.cluster, name)
    following = Following(plane.cluster, name, rank="all")
    kubelet.end(first)
    end_container(plane.cluster, first, code=0)
    kubelet.write(second, "line")
    wait_for(lambda: following.lines, what="the line", timeout=180)
    kubelet.end(second)
    end_container(plane.cluster, second, code=0)
    following.ends()
    assert following.said == []
    (line,) = following.lines
    assert line.endswith("] line")


@pytest.mark.engines
def test_pods_without_numbers_have_one_follower_each(kubelet: Kubelet, started: Any, plane: ControlPlane) -> None:
    run = manifests.job("unnumbered", 2, pool="talk")
    run["spec"] |= {"completionMode": "NonIndexed", "backoffLimit": 4}
    run["spec"].pop("podFailurePolicy", None)
    started(run)
    old = set(running_pods(plane.cluster, "unnumbered"))
    following = Following(plane.cluster, "unnumbered", rank="all")
    for pod in old:
        kubelet.end(pod)
        end_container(plane.cluster, pod)

    def replaced() -> bool:
        return len(set(running_pods(plane.cluster, "unnumbered")) - old) == len(following.said) == 2

    wait_for(replaced, what="two replacements", timeout=180)
    new = set(running_pods(plane.cluster, "unnumbered")) - old
    assert {text.split()[1] for text in following.said} == new
    for pod in new:
        kubelet.end(pod)
        end_container(plane.cluster, pod, code=0)
    following.ends()


def task(name: str, component: str, *, release: str = "") -> Object:
    """A Job of one pod without a number, with a task of chartgen's charts."""
    made = manifests.job(release or name, 1, pool="talk")
    made["metadata"]["name"] = name
    made["spec"]["completionMode"] = "NonIndexed"
    made["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"] = component
    return made


def running_pods(cluster: Cluster, release: str) -> list[str]:
    found = cluster.list(POD, namespace="default", labels={"app.kubernetes.io/instance": release})
    return [pod["metadata"]["name"] for pod in found if pod["status"].get("phase") == "Running"]


@pytest.mark.engines
def test_a_pod_with_a_false_number_does_not_end_it(kubelet: Kubelet, started: Any, plane: ControlPlane) -> None:
    (pod, _) = started(manifests.jobset("false", 2, pool="talk"))
    kubelet.write(pod, "before")
    following = Following(plane.cluster, "false")
    following.has("before")
    plane.cluster.patch(POD, pod, {"metadata": {"labels": {JOB_INDEX: "x"}}}, namespace="default")
    kubelet.drop()
    wait_for(lambda: following.said, what="that it is said", timeout=180)
    plane.cluster.patch(POD, pod, {"metadata": {"labels": {JOB_INDEX: "0"}}}, namespace="default")
    kubelet.write(pod, "after")
    following.has("before", "after")
    kubelet.end(pod)
    end_container(plane.cluster, pod)
    following.ends()
    assert following.said == [f"the log of pod {pod} does not come, trying again"]


@pytest.mark.engines
def test_a_restarted_run_is_followed_in_its_new_pod(kubelet: Kubelet, started: Any, plane: ControlPlane) -> None:
    run = manifests.jobset("again", 2, pool="talk")
    run["spec"]["failurePolicy"] = {"maxRestarts": 1}
    (old, _) = started(run)
    kubelet.write(old, "first life", "last words")
    following = Following(plane.cluster, "again")
    following.has("first life", "last words")
    end_container(plane.cluster, old)
    kubelet.end(old)
    wait_for(lambda: restarts(plane.cluster, "again") == 1, what="a restart", timeout=180)
    wait_for(lambda: len(pod_names(plane.cluster, "again")) == 2, what="the new pods", timeout=180)
    new = pod_names(plane.cluster, "again")[0]
    kubelet.write(new, "second life")
    following.has("first life", "last words", "second life")
    assert following.said[-1].startswith(f"pod {new} on machine talk-")
    assert following.said[-1].endswith(f"replaces pod {old}")
    kubelet.end(new)
    end_container(plane.cluster, new)
    following.ends()


def restarts(cluster: Cluster, name: str) -> int:
    return int((cluster.get(JOBSET, name) or {}).get("status", {}).get("restarts", 0))


@pytest.mark.engines
def test_a_container_that_restarts_in_its_pod_is_followed(kubelet: Kubelet, started: Any, plane: ControlPlane) -> None:
    (pod, _) = started(manifests.pytorchjob("inplace", 2, pool="talk"))
    kubelet.write(pod, "one")
    following = Following(plane.cluster, "inplace")
    following.has("one")
    kubelet.drop()
    kubelet.write(pod, "two", second=1)
    kubelet.restart(pod)
    kubelet.write(pod, "three", second=2)
    status = [
        {**WAITING, "name": "pytorch", "ready": True, "restartCount": 1, "state": {"running": {"startedAt": None}}}
    ]
    plane.cluster.patch(POD, pod, {"status": {"containerStatuses": status}}, namespace="default", subresource="status")
    following.has("one", "two", "three")
    kubelet.end(pod)
    end_container(plane.cluster, pod, container="pytorch")
    following.ends()


@pytest.mark.engines
def test_ctrl_c_ends_it_quietly(kubelet: Kubelet, started: Any, plane: ControlPlane) -> None:
    (pod, _) = started(manifests.jobset("stopped", 2, pool="talk"))
    kubelet.write(pod, "line")
    argv = [sys.executable, "-m", "chartgen", "logs", "stopped", "--follow", "--rank", "0"]
    env = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    with running(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "line\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=180)
    assert (process.returncode, errors) == (130, "")


class Broken(Source):
    """A source whose lines end in an error that nobody has foreseen."""

    def shows(self, line: str) -> bool:
        raise RuntimeError(line)


def threads() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name.endswith("(collect)")}


@pytest.mark.engines
def test_an_unforeseen_error_ends_it(kubelet: Kubelet, started: Any, plane: ControlPlane) -> None:
    (pod, _) = started(manifests.jobset("broken", 2, pool="talk"))
    kubelet.write(pod, "a line")
    sources = find_sources(plane.cluster, "broken", "default", rank="all")
    sources[0] = Broken(sources[0].member, None)
    stream = follow_logs(plane.cluster, "broken", sources, "default", progress=lambda _: None)
    told: list[Exception] = []

    def read() -> None:
        try:
            list(stream)
        except RuntimeError as error:
            told.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(180)
    assert [str(error) for error in told] == ["a line"]
    assert threads() == set()


@pytest.mark.engines
@pytest.mark.parametrize("lines", [1, 5000], ids=["they wait for more", "they wait to be read"])
def test_closing_it_early_leaves_no_thread(
    kubelet: Kubelet, started: Any, plane: ControlPlane, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = started(manifests.jobset(f"early-{lines}", 4, pool="talk"))
    for pod in pods:
        kubelet.write(pod, *(f"line {number}" for number in range(lines)))
    backlogs: list[queue.Queue[Any]] = []

    class Backlog(queue.Queue[Any]):
        def __init__(self, maxsize: int = 0) -> None:
            super().__init__(maxsize)
            backlogs.append(self)

    monkeypatch.setattr(queue, "Queue", Backlog)
    sources = find_sources(plane.cluster, f"early-{lines}", "default", rank="all")
    stream = follow_logs(plane.cluster, f"early-{lines}", sources, "default", progress=lambda _: None)
    with closing(stream):  # type: ignore[type-var]  # a generator has close()
        assert next(stream).endswith("line 0")
        assert len(threads()) == 4
        if lines > 1:
            wait_for(backlogs[0].full, what="that nobody can hand over more", timeout=180)
    assert threads() == set()


def sidecar(pod: Object) -> Object:
    """A pod as an admission webhook leaves it: its container first, a native sidecar, and its statuses first too."""
    spec, name = pod["spec"], pod["spec"]["containers"][0]["name"]
    ended = {"exitCode": 137, "reason": "Error", "finishedAt": "2026-01-02T03:04:00Z"}
    told = {"ready": True, "image": "x", "imageID": ""}
    started = {"running": {"startedAt": "2026-01-02T03:00:00Z"}}
    side = {"name": "gke-gcsfuse-sidecar", "image": "x", "env": [{"name": "GPUS_PER_NODE", "value": "3"}]}
    statuses = [
        {**told, "name": side["name"], "restartCount": 5, "state": started, "lastState": {"terminated": ended}},
        {**told, "name": name, "restartCount": 1, "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}},
    ]
    native = {"name": "istio-proxy", "image": "x", "restartPolicy": "Always"}
    pod = {**pod, "spec": {**spec, "containers": [side, *spec["containers"]], "initContainers": [native]}}
    first = {**told, "name": "istio-proxy", "restartCount": 2, "state": started}
    return {**pod, "status": {"phase": "Running", "containerStatuses": statuses, "initContainerStatuses": [first]}}


@pytest.mark.parametrize(
    ("annotations", "gpus_of_program", "container"),
    [
        ({"kubectl.kubernetes.io/default-container": "workload"}, {}, "workload"),
        ({"kubectl.kubernetes.io/default-container": "workload"}, {"nvidia.com/gpu": "8"}, "workload"),
        ({"kubectl.kubernetes.io/default-container": "gone"}, {"nvidia.com/gpu": "8"}, "workload"),
        ({}, {"nvidia.com/gpu": "8"}, "workload"),
        (None, {"nvidia.com/gpu": "8"}, "workload"),
    ],
)
def test_an_injected_sidecar_is_not_the_program(annotations: Any, gpus_of_program: Any, container: str) -> None:
    metadata = {"name": "p", "uid": "u", "annotations": annotations, "labels": {JOB_INDEX: "1"}}
    program = {"name": "workload", "image": "x", "resources": {"limits": gpus_of_program}}
    found = member(sidecar({"metadata": metadata, "spec": {"containers": [program]}}))
    count = int(gpus_of_program.get("nvidia.com/gpu", 0))
    assert (found.container, found.ranks) == (container, range(count, 2 * count))
    assert found.since == datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    assert (found.restarts, found.program_restarts) == (8, 1)


def test_the_program_is_blamed_before_a_sidecar() -> None:
    ended = [{"name": name, "state": {"terminated": {"exitCode": code}}} for name, code in (("side", 1), ("train", 7))]
    pod = {
        "metadata": {"name": "p", "uid": "1", "annotations": {"kubectl.kubernetes.io/default-container": "train"}},
        "spec": {"containers": [{"name": "side"}, {"name": "train"}]},
        "status": {"phase": "Failed", "containerStatuses": ended},
    }
    assert [(end.container, end.exit_code) for end in member(pod).ends] == [("train", 7), ("side", 1)]


def test_a_pod_that_names_no_container_runs_the_one_with_gpus() -> None:
    limits = {"limits": {"nvidia.com/gpu": "8"}}
    pod = {"spec": {"containers": [{"name": "side"}, {"name": "train", "resources": limits}]}}
    assert program_of(pod)["name"] == "train"
    assert program_of({"spec": {"containers": [{"name": "one"}, {"name": "two"}]}})["name"] == "one"


@pytest.mark.engines
def test_too_many_pods_are_not_followed_at_once(plane: ControlPlane) -> None:
    source = Source(member({"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [{"name": "c"}]}}), None)
    with pytest.raises(ChartgenError, match="65 pods are too many to follow at once, 64 is the most; choose one"):
        next(follow_logs(plane.cluster, "r", [source] * 65, "default", progress=lambda _: None))


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("[default3]:text", 11),
        ("retraining/0 [default3]:text", 11),
        ("[trainer0]:text", 8),
        ("[rank3]: Traceback", 3),
        ("[rank3]:[W1121 17:00:00] text", 3),
        ("[1,3]<stdout>:text", 3),
        ("[prterun-host-1@1,3]<stderr>: text", 3),
        (" [2025-01-01 00:00:00] iteration 10/ 100 |", None),
        ("[NeMo I 2025-03-10 16:24:43 perf_metrics_utils:42] text", None),
        ("text [default3]:", None),
        ("", None),
    ],
)
def test_the_rank_of_a_line(line: str, rank: int | None) -> None:
    assert Source(on_second_machine(), None).rank_of(line) == rank


def on_second_machine() -> Any:
    limits = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
    labels = {"batch.kubernetes.io/job-completion-index": "1"}
    metadata = {"name": "p", "uid": "u", "labels": labels}
    return member({"metadata": metadata, "spec": {"containers": [{"name": "train", **limits}]}})


def test_only_what_can_come_again_is_remembered() -> None:
    seen = Seen()
    for second in range(50):
        assert seen.new(f"2026-01-01T00:00:{second:02}.5Z text") == "text"
    assert len(seen._recent) == 2
    assert seen.options() == {"sinceTime": "2026-01-01T00:00:48Z"}
    assert seen.new("2026-01-01T00:00:49.5Z text") is None
    assert seen.new("2026-01-01T00:00:49.5Z text") == "text"
    assert seen.new("unable to retrieve container logs") == "unable to retrieve container logs"


@pytest.mark.engines
@pytest.mark.parametrize(
    ("target", "sets", "label", "ranks"),
    [
        ("gke-a3mega", ("nodes=2",), JOB_INDEX, range(8, 16)),
        ("gke-a3high", ("nodes=2",), JOB_INDEX, range(8, 16)),
        ("onprem-p8000", ("nodes=1", "gpusPerNode=2"), JOB_INDEX, range(2, 4)),
        ("eks-p5", ("nodes=2", "gpusPerNode=2"), "training.kubeflow.org/replica-index", range(2, 4)),
        ("oke-h100", ("nodes=2", "gpusPerNode=2"), "volcano.sh/task-index", range(2, 4)),
    ],
)
@pytest.mark.usefixtures("built_engines")
def test_the_charts_tell_the_ranks_of_their_pods(target: str, sets: tuple[str, ...], label: str, ranks: range) -> None:
    """GPUs per machine come from the pod itself, also when a run takes fewer than the machine has."""
    run = next(item for item in rendered(*sets, files=(), name=target) if kind_of(item))
    templates = [*templates_of(run["spec"])]
    assert [ranks_of(each, label) for each in templates if gpus(each)] == [ranks]
    assert [ranks_of(each, label) for each in templates if not gpus(each)] == [range(0)] * (len(templates) - 1)


def kind_of(item: Object) -> bool:
    return item["kind"] in {"JobSet", "Job", "PyTorchJob"}


def templates_of(spec: Any) -> Iterator[Object]:
    """The pod templates inside a run's spec."""
    if isinstance(spec, dict):
        if "containers" in spec.get("spec", {}):
            yield spec
            return
        spec = list(spec.values())
    for each in spec if isinstance(spec, list) else ():
        yield from templates_of(each)


def ranks_of(template: Object, label: str) -> range:
    labels = {**template["metadata"]["labels"], label: "1"}
    return member({**template, "metadata": {"name": "p", "uid": "u", "labels": labels}}).ranks
