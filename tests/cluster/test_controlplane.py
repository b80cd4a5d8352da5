"""Control planes: private, several at a time, and nothing of them stays however their owner ends."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

import manifests
import pytest
from process_helpers import alive, gone

from chartgen.errors import ChartgenError, MissingToolError
from chartgen.kube import JOB, NODE, POD, wait_for
from chartgen.rehearsal.controlplane import ControlPlane, service_account_key
from chartgen.rehearsal.folders import sweep_folders
from chartgen.rehearsal.processes import Processes
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines

OWNER = """
import sys, time
from chartgen.rehearsal.controlplane import ControlPlane
with ControlPlane() as plane:
    print(plane.folder, plane.processes.pid, *plane.processes.pids.values(), flush=True)
    time.sleep(600)
"""
SERVE = "import http.server, sys; http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), None).serve_forever()"

pytestmark = pytest.mark.engines


def wait_until(check: Callable[[], bool], seconds: float = 180) -> bool:
    deadline = time.monotonic() + seconds
    while not check() and time.monotonic() < deadline:
        time.sleep(0.05)
    return check()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def owner(built_engines: None) -> tuple[subprocess.Popen[str], Path, int, list[int]]:  # noqa: ARG001
    """A process that owns a control plane: itself, the folder, the supervisor and the children."""
    process = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    folder, supervisor, *children = process.stdout.readline().split()
    process.stdout.close()
    return process, Path(folder), int(supervisor), [int(pid) for pid in children]


def test_two_planes_run_side_by_side(plane: ControlPlane) -> None:
    with ControlPlane(run_seconds=0.5) as other:
        assert other.server != plane.server
        assert other.cluster.version == plane.cluster.version == "v1.37.2"
        create_machines(other.cluster, [manifests.pool("side", 2)])
        other.cluster.apply([manifests.job("short", 2, pool="side")])

        def finished() -> bool:
            job = other.cluster.get(JOB, "short") or {}
            return bool(job.get("status", {}).get("succeeded") == 2)

        wait_for(finished, what="that the simulated pods succeed", timeout=180)
        assert {node["metadata"]["name"] for node in other.cluster.list(NODE)} == {"side-0", "side-1"}
        assert plane.cluster.get(NODE, "side-0") is None
        folder, pids = other.folder, list(other.processes.pids.values())
    assert gone(pids)
    assert not folder.exists()
    assert plane.processes.exited() == {}


@pytest.mark.threat(7)
def test_its_files_are_private(plane: ControlPlane) -> None:
    assert plane.folder.stat().st_mode & 0o777 == 0o700
    for name in ("kubeconfig", "tokens.csv", "accounts.pem"):
        assert (plane.folder / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.threat(7)
def test_nothing_listens_beyond_this_machine(plane: ControlPlane) -> None:
    """Every listening socket of the plane's processes is bound to a loopback address."""
    addresses = {address for name in plane.processes.pids for address, _ in listening(plane, name)}
    assert addresses == {"0100007F"}  # 127.0.0.1 in the byte order of /proc


def listening(plane: ControlPlane, name: str) -> list[tuple[str, int]]:
    """Address and port of each listening socket of a process."""
    links = Path(f"/proc/{plane.processes.pids[name]}/fd").iterdir()
    own = {str(link.readlink()) for link in links if link.is_symlink()}
    rows = [line.split() for kind in ("tcp", "tcp6") for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]]
    places = [row[1].split(":") for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own]
    return [(address, int(port, 16)) for address, port in places]


@pytest.mark.threat(7)
def test_another_user_of_this_machine_learns_nothing(plane: ControlPlane) -> None:
    """Without credentials no port gives data away, but whether it is healthy and one sentence of a log."""
    assert listening(plane, "etcd") == listening(plane, "kwok") == []
    assert listening(plane, "kube-apiserver")
    paths = ("metrics", "debug/pprof/", "debug/flags/v", "configz", "api", "version", "discovery/prometheus", "pods")
    asked, told = 0, []
    for name in plane.processes.pids:
        for _, port in listening(plane, name):
            for path in paths:
                for scheme in ("http", "https"):
                    asked += 1
                    told += [(name, path)] if status(f"{scheme}://127.0.0.1:{port}/{path}") == 200 else []
    assert asked > 0
    assert told == []


def status(address: str) -> int:
    """Status of a GET without credentials; 0 when there is no answer."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    try:
        with urllib.request.build_opener(*handlers).open(address, timeout=10) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        error.close()
        return int(error.code)
    except OSError:
        return 0


def test_a_simulated_container_has_a_log(plane: ControlPlane) -> None:
    [machine] = create_machines(plane.cluster, [manifests.pool("logs", 1)])
    plane.cluster.apply([manifests.job("talks", 1, pool="logs")])

    def running() -> list[str]:
        pods = plane.cluster.list(POD, namespace="default", labels={"app.kubernetes.io/instance": "talks"})
        return [pod["metadata"]["name"] for pod in pods if pod.get("status", {}).get("phase") == "Running"]

    [pod] = wait_for(running, what="that the pod runs", timeout=180)

    def log(idle: float = 60.0, **params: str) -> list[str]:
        return [*plane.cluster.stream(POD, pod, "default", subresource="log", params=params, idle=idle)]

    [line] = log()
    [stamped] = log(timestamps="true")
    when, _, text = stamped.partition(" ")
    assert text == line
    assert log(sinceTime=when) == [line]
    assert log(sinceTime=when.replace("2026-01-01", "2026-01-02")) == log(tailLines="0") == log(sinceSeconds="5") == []
    assert log(follow="true", idle=0.5) == [line]  # it stays open, and the idle limit ends it
    plane.cluster.delete(JOB, "talks")
    delete_machines(plane.cluster, [machine])


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_its_owner(
    owner: tuple[subprocess.Popen[str], Path, int, list[int]], way: signal.Signals
) -> None:
    process, folder, supervisor, children = owner
    assert all(map(alive, [supervisor, *children]))
    process.send_signal(way)
    process.wait(timeout=180)
    assert gone([supervisor, *children])
    assert wait_until(lambda: not folder.exists())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux can tie a child to its parent's life")
def test_when_the_supervisor_is_killed_too_the_next_start_sweeps(
    owner: tuple[subprocess.Popen[str], Path, int, list[int]],
) -> None:
    process, folder, supervisor, children = owner
    os.kill(supervisor, signal.SIGKILL)
    process.kill()
    process.wait(timeout=180)
    assert gone([supervisor, *children])
    assert folder.exists()
    sweep_folders()
    assert not folder.exists()


def test_sweeping_spares_what_runs(plane: ControlPlane) -> None:
    sweep_folders()
    assert plane.kubeconfig.exists()


def test_a_port_that_was_taken_in_between_is_picked_anew() -> None:
    with socket.socket() as thief, Processes() as processes:
        thief.bind(("127.0.0.1", 0))
        thief.listen()
        taken = thief.getsockname()[1]
        tried: list[int] = []

        def command(ports: Sequence[int]) -> list[str]:
            tried.append(ports[0] if tried else taken)
            return [sys.executable, "-c", SERVE, str(tried[-1])]

        def ready(ports: Sequence[int]) -> bool:
            return len(tried) > 1 and listens(ports[0])

        assert processes.start("server", command, ports=1, ready=ready) == [tried[1]]


def test_a_process_that_ends_at_its_start_shows_its_last_words() -> None:
    argv = ["sh", "-c", "echo no such flag >&2; exit 3"]
    with Processes() as processes, pytest.raises(MissingToolError, match=r"exit code 3; its log ends: .*no such flag"):
        processes.start("engine", lambda _: argv, ready=lambda _: False)


def test_a_process_that_never_serves_is_given_up() -> None:
    with Processes() as processes, pytest.raises(MissingToolError, match="engine is not ready after 0 s"):
        processes.start("engine", lambda _: ["sleep", "60"], ready=lambda _: False, timeout=0.2)


def test_a_program_that_is_missing_is_named() -> None:
    with Processes() as processes, pytest.raises(MissingToolError, match="/nowhere/etcd: No such file"):
        processes.spawn("etcd", ["/nowhere/etcd"])


def test_a_supervisor_that_was_killed_is_told_and_its_end_is_quiet() -> None:
    processes = Processes()
    processes.spawn("child", ["sleep", "60"])
    os.kill(processes.pid, signal.SIGKILL)
    assert gone([processes.pid])
    with pytest.raises(MissingToolError, match=rf"process {processes.pid}, was killed by signal 9"):
        processes.exited()
    processes.close()
    assert not processes.folder.exists()


def test_a_process_that_was_killed_is_told() -> None:
    with Processes() as processes:
        processes.spawn("child", ["sleep", "60"])
        os.kill(processes.pids["child"], signal.SIGKILL)
        assert gone(list(processes.pids.values()))
        problem = processes.ended()
        assert problem
        assert problem.message == "child was killed by signal 9"


def test_after_its_end_it_says_so() -> None:
    processes = Processes()
    processes.close()
    processes.close()
    with pytest.raises(ChartgenError, match="has ended"):
        processes.exited()


def test_the_account_key_is_new_each_time_and_has_one_length() -> None:
    keys = {service_account_key() for _ in range(20)}
    assert len(keys) == 20
    assert {len(key) for key in keys} == {len(next(iter(keys)))}


def test_service_accounts_get_signed_tokens(plane: ControlPlane) -> None:
    """The key that chartgen writes signs tokens that the API server accepts itself."""
    from chartgen.kube import Kind

    accounts = Kind("v1", "TokenRequest", "serviceaccounts")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = accounts.path("default", "default", "token")
    token = plane.cluster._send("POST", path, None, request)["status"]["token"]
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = plane.cluster._send("POST", "apis/authentication.k8s.io/v1/tokenreviews", None, review)
    assert answer["status"]["user"]["username"] == "system:serviceaccount:default:default"


def test_a_plane_starts_without_pods(plane: ControlPlane) -> None:
    assert [pod for pod in plane.cluster.list(POD) if pod["metadata"]["namespace"].endswith("-system")] == []
