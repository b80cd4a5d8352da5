"""Waiting for runs and following them: exit codes that chain, and a cluster that goes away and comes back."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import manifests
import pytest
from answers import answer, answers
from kubelet import end_container, pod_names
from proxy import Proxy, proxy_to

from chartgen.errors import ChartgenError
from chartgen.kube import JOB, POD, Object, connect, wait_for
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.releases.status.watch import wait_for_phase

pytestmark = pytest.mark.engines
CHARTGEN = [sys.executable, "-m", "chartgen"]
DELAY = "pod-complete.stage.kwok.x-k8s.io/delay"


@pytest.fixture(scope="module")
def machines(plane: ControlPlane) -> Iterator[ControlPlane]:
    found = create_machines(plane.cluster, [manifests.pool("wait", 3)])
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
        machines.cluster.delete_object(item, namespace="default", foreground=True)


def brief(name: str, seconds: int) -> Object:
    """A Job that succeeds after some seconds."""
    job = manifests.job(name, 1, pool="wait")
    job["spec"]["template"]["metadata"]["annotations"] = {DELAY: f"{seconds}s"}
    return job


def chartgen(plane: ControlPlane, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    return subprocess.run([*CHARTGEN, *arguments], env=env, capture_output=True, text=True, check=False, timeout=180)


def test_waiting_ends_when_the_run_has_finished(run: Any, machines: ControlPlane) -> None:
    lines: list[str] = []
    readout = wait_for_phase(machines.cluster, run(brief("soon", 2)), "finished", timeout=180, progress=lines.append)
    assert readout.phase == "finished"
    assert lines[-1] == "finished"
    assert "running; 1 of 1 pods ready" in lines


def test_what_is_further_counts_too(run: Any, machines: ControlPlane) -> None:
    run(manifests.job("steady", 1, pool="wait"))
    assert wait_for_phase(machines.cluster, "steady", "running", timeout=180).phase == "running"
    assert wait_for_phase(machines.cluster, "steady", "queued", timeout=180).phase == "running"


def test_a_failed_run_ends_the_wait_with_its_readout(run: Any, machines: ControlPlane) -> None:
    run(manifests.job("breaks", 1, pool="wait"))
    wait_for_phase(machines.cluster, "breaks", "running", timeout=180)
    (pod,) = pod_names(machines.cluster, "breaks")
    end_container(machines.cluster, pod, message="boom")
    done = chartgen(machines, "wait", "breaks", "--for", "finished", "--timeout", "30s")
    assert done.returncode == 1
    assert re.match(r"breaks: failed \d+ s ago\n", done.stdout)
    assert "failed first: train ended with exit code 7\n" in done.stdout
    assert "              | boom\n" in done.stdout
    plain = answer(chartgen(machines, "status", "breaks", "--output", "json").stdout)
    assert (plain["phase"], plain["failure"]["exitCode"], plain["failure"]["lines"]) == ("failed", 7, ["boom"])


def test_a_run_that_takes_too_long(run: Any, machines: ControlPlane) -> None:
    job = manifests.job("stuck", 1, pool="wait", gpus=9)
    run(job)
    with pytest.raises(ChartgenError, match=r"release stuck is not running after 6 s: starting; 0 of 1 pods"):
        wait_for_phase(machines.cluster, "stuck", "running", timeout=6)


def test_a_release_that_is_not_there_is_not_waited_for(machines: ControlPlane) -> None:
    done = chartgen(machines, "wait", "nobody")
    hint = "`helm list --all-namespaces` shows all releases"
    assert done.stderr == f"error: no release nobody in namespace default; {hint}\n"
    assert (done.returncode, done.stdout) == (1, "")
    shown = chartgen(machines, "status", "nobody")
    assert (shown.returncode, shown.stdout.splitlines()[0]) == (1, "nobody: absent")


def test_waits_chain_in_a_shell(run: Any, machines: ControlPlane) -> None:
    run(brief("prep", 1))
    wait = " ".join([*CHARTGEN, "wait", "prep", "--timeout", "30s"])
    env = {**os.environ, "KUBECONFIG": str(machines.kubeconfig)}
    done = subprocess.run(
        ["bash", "-c", f"{wait} && echo next"], env=env, capture_output=True, text=True, check=False, timeout=180
    )
    assert done.stdout.splitlines()[-1] == "next"


@pytest.mark.parametrize("text", ["", "10", "10x", "1h30m", "-1s"])
def test_a_time_span_that_is_none(text: str, machines: ControlPlane) -> None:
    done = chartgen(machines, "wait", "nobody", "--timeout", text)
    assert done.returncode == 2
    assert f"{text!r} is not a time span such as 90s, 10m or 2h" in done.stderr


@pytest.fixture
def proxy(machines: ControlPlane, tmp_path: Path) -> Iterator[Proxy]:
    with proxy_to(machines, tmp_path) as found:
        yield found


def test_waiting_survives_a_cluster_that_goes_away(run: Any, proxy: Proxy, machines: ControlPlane) -> None:
    run(brief("context", 10))
    lines: list[str] = []
    with connect(kubeconfig=proxy.kubeconfig) as cluster:
        timer = threading.Timer(3, proxy.cut)
        timer.start()
        threading.Timer(8, proxy.mend).start()
        readout = wait_for_phase(cluster, "context", "finished", timeout=180, progress=lines.append)
    assert readout.phase == "finished"
    assert lines.count("the cluster does not answer, trying again") == 1
    assert lines.count("the cluster answers again") == 1
    assert wait_for_phase(machines.cluster, "context", "finished").phase == "finished"


def followed(kubeconfig: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    env = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    return subprocess.Popen(
        [*CHARTGEN, "status", *arguments, "--follow"], env=env, text=True, stderr=subprocess.PIPE, **options
    )


def test_following_prints_changes_and_ends_with_the_run(run: Any, proxy: Proxy) -> None:
    run(brief("walk", 15))
    with followed(proxy.kubeconfig, "walk", stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        before = ""
        for line in iter(running.stdout.readline, ""):
            before += line
            if "1 of 1 pods ready" in line:
                break
        proxy.cut()
        lost = running.stderr.readline()
        time.sleep(4)
        proxy.mend()
        rest, errors = running.communicate(timeout=180)
    output = before + rest
    assert running.returncode == 0
    plain = [line.partition(" ")[2] for line in output.splitlines() if re.match(r"\d\d:\d\d:\d\d ", line)]
    assert plain[-1] == "finished"
    assert "running; 1 of 1 pods ready" in plain
    assert len(plain) == len(set(plain))
    assert re.search(r"^walk: finished \d+ s ago$", output, re.MULTILINE)
    assert (lost, errors) == ("> the cluster does not answer, trying again\n", "> the cluster answers again\n")


def test_a_run_that_is_being_replaced_does_not_end_the_wait(run: Any, machines: ControlPlane) -> None:
    old = manifests.job("swap", 1, pool="wait")
    old["metadata"]["finalizers"] = ["chartgen.test/terminating"]  # as pods with a long grace period hold it
    run(old)
    wait_for_phase(machines.cluster, "swap", "running", timeout=180)
    new = brief("swap", 1)
    new["metadata"]["name"] = "swap-2"
    lines: list[str] = []
    with (
        followed(machines.kubeconfig, "swap", "--output", "json", stdout=subprocess.PIPE) as following,
        ThreadPoolExecutor() as pool,
    ):
        assert following.stdout is not None
        assert answer(following.stdout.readline())["phase"] == "running"
        machines.cluster.delete(JOB, "swap", "default")
        waiting = pool.submit(wait_for_phase, machines.cluster, "swap", "finished", timeout=180, progress=lines.append)
        try:
            leaving = answer(following.stdout.readline())
            wait_for(lambda: lines or waiting.done(), what="that it waits", timeout=180)
            run(new)
        finally:
            machines.cluster.patch(JOB, "swap", {"metadata": {"finalizers": None}}, namespace="default")
        assert waiting.result().runs == ("Job swap-2",)
        following.communicate(timeout=180)
    assert (leaving["phase"], leaving["runs"]) == ("absent", ["Job swap"])
    assert "Job swap is being deleted" in lines[0]
    assert following.returncode == 0


def test_following_a_failure_ends_with_1(run: Any, machines: ControlPlane) -> None:
    run(manifests.job("falls", 1, pool="wait"))
    wait_for_phase(machines.cluster, "falls", "running", timeout=180)
    with followed(machines.kubeconfig, "falls", "--output", "json", stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert answer(running.stdout.readline())["phase"] == "running"
        end_container(machines.cluster, pod_names(machines.cluster, "falls")[0])
        output, _ = running.communicate(timeout=180)
    assert running.returncode == 1
    assert answers(output)[-1]["phase"] == "failed"


def test_ctrl_c_ends_following_quietly(run: Any, machines: ControlPlane) -> None:
    run(manifests.job("held-on", 1, pool="wait"))
    with followed(machines.kubeconfig, "held-on", stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline()
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=180)
    assert (running.returncode, errors) == (130, "")


def test_on_a_terminal_it_is_drawn_over_itself(run: Any, machines: ControlPlane) -> None:
    run(brief("drawn", 6))
    leader, follower = pty.openpty()
    with followed(machines.kubeconfig, "drawn", stdout=follower) as running:
        os.close(follower)
        screen = b""
        while True:
            try:
                screen += os.read(leader, 65536)
            except OSError:  # the other side was closed
                break
        running.wait(timeout=180)
    os.close(leader)
    text = screen.decode()
    assert running.returncode == 0
    assert re.search(r"drawn: (starting|running) for \d+ s\r\n", text)
    assert re.search(r"\x1b\[\d+F\x1b\[Jdrawn: finished \d+ s ago", text)


def test_pages_are_put_together(machines: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chartgen.kube.cluster._PAGE", 2)
    run = manifests.job("pages", 5, gpus=0, pool="wait")
    machines.cluster.apply([run])
    labels = {"app.kubernetes.io/instance": "pages"}
    wait_for(
        lambda: len(machines.cluster.list(POD, namespace="default", labels=labels)) == 5, what="5 pods", timeout=180
    )
    found = [pod["metadata"]["name"] for pod in machines.cluster.each(POD, namespace="default", labels=labels)]
    assert len(set(found)) == 5
    machines.cluster.delete_object(run, namespace="default")
