"""What a kubelet does for tests: it reports the state of containers and serves their logs, over the real API server."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from chartgen.kube import NODE, POD, Cluster, Kind, wait_for
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.releases.status.members import member

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


class Kubelet:
    """Serves the logs of all pods on some machines.

    Args:
        plane: The control plane, whose API server asks for them.
        machines: Names of the machines.
    """

    def __init__(self, plane: ControlPlane, machines: list[str]) -> None:
        self._plane, self._machines, self._port = plane, machines, 0
        self._lines: dict[str, list[tuple[str, str]]] = {}
        self._changed = threading.Condition()
        self._ended: set[str] = set()
        self._dropped = 0
        self.waiting: set[str] = set()  # pods whose container has not started
        self._stalled: set[str] = set()
        self._start()

    def write(self, pod: str, *lines: str, second: float = 0.0, count: bool = True) -> None:
        """Let a program print lines, one nanosecond after the other or (`count` false) all at the same time."""
        with self._changed:
            kept = self._lines.setdefault(pod, [])
            for line in lines:
                when = START + timedelta(seconds=second)
                stamp = f"{when:%Y-%m-%dT%H:%M:%S}.{len(kept) if count else 0:09d}Z"
                kept.append((stamp, line))
            self._changed.notify_all()

    def stall(self, pod: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the log of a pod never end, as when its machine dies; chartgen waits two seconds for this one."""
        self._stalled.add(pod)
        stream = Cluster.stream

        def impatient(cluster: Cluster, kind: Kind, name: str, *rest: Any, idle: float, **more: Any) -> Iterator[str]:
            return stream(cluster, kind, name, *rest, idle=2.0 if name == pod else idle, **more)

        monkeypatch.setattr(Cluster, "stream", impatient)

    def end(self, pod: str) -> None:
        """Let a container end, so that followed logs end too."""
        with self._changed:
            self._ended.add(pod)
            self._changed.notify_all()

    def restart(self, pod: str) -> None:
        """Let a container be restarted: its log is the previous one from now on."""
        with self._changed:
            self._lines[f"{pod} previous"] = self._lines.pop(pod, [])
            self._ended.discard(pod)
            self._dropped += 1
            self._changed.notify_all()

    def drop(self) -> None:
        """Cut all connections in the middle."""
        with self._changed:
            self._dropped += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Go away; `open` comes back on the same port."""
        self._server.shutdown()
        self._server.server_close()
        self.drop()

    def open(self) -> None:
        """Come back after `close`."""
        self._start()

    def _start(self) -> None:
        kubelet = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                kubelet._answer(self)

            def log_message(self, *_: Any) -> None:
                """Stay quiet."""

        class Server(ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = True
            block_on_close = False
            checked = 0.0

            def service_actions(self) -> None:
                if time.monotonic() > self.checked + 1:
                    self.checked = time.monotonic()
                    kubelet._serve_machines()

        self._server = Server(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_address[1]
        certificates = self._plane.folder / "apiserver"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "apiserver.crt", certificates / "apiserver.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        get = partial(self._plane.cluster.get, NODE)
        for machine in self._machines:  # kwok writes a port of its own when it initializes one
            wait_for(lambda: (get(machine) or {})["status"].get("phase") == "Running", what="kwok", timeout=180)  # noqa: B023
        self._serve_machines()

    def _serve_machines(self) -> None:
        """Let the API server ask here; on a loaded machine, kwok initializes one twice."""
        status = {"daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}}}
        for machine in self._machines:
            node = self._plane.cluster.get(NODE, machine)
            if node and node["status"].get("daemonEndpoints") != status["daemonEndpoints"]:
                self._plane.cluster.patch(NODE, machine, {"status": status}, subresource="status")

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        url = urlsplit(request.path)
        options = {key: values[0] for key, values in parse_qs(url.query).items()}
        _, _, _, pod, _ = url.path.split("/")
        if pod in self.waiting:
            text = f'container "train" in pod "{pod}" is waiting to start: ContainerCreating'
            request.send_error(400, text, text)
            return
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        complete = False
        for line in self._wanted(pod, options):
            complete = line is None
            if line is not None:
                data = f"{line}\n".encode()
                request.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        request.close_connection = True
        if complete:
            request.wfile.write(b"0\r\n\r\n")

    def _wanted(self, pod: str, options: dict[str, str]) -> Iterator[str | None]:
        """Return lines as a kubelet does; None at the regular end, nothing when the connection is cut."""
        pod = f"{pod} previous" if options.get("previous") == "true" else pod
        with self._changed:
            position, dropped = 0, self._dropped
            if "tailLines" in options:
                position = max(0, len(self._lines.get(pod, [])) - int(options["tailLines"]))
        while True:
            with self._changed:
                found = self._lines.get(pod, [])[position:]
                finished = (options.get("follow") != "true" and pod not in self._stalled) or pod in self._ended
                if not found and not finished and dropped == self._dropped:
                    self._changed.wait(1.0)
                    continue
                if dropped != self._dropped:
                    return
            for stamp, text in found:
                position += 1
                if stamp[:19] + "Z" >= options.get("sinceTime", ""):
                    yield f"{stamp} {text}" if options.get("timestamps") == "true" else text
            if finished and not found:
                yield None
                return
            if finished and options.get("follow") != "true":
                yield None
                return


@contextmanager
def kubelet_of(plane: ControlPlane, machines: list[str]) -> Iterator[Kubelet]:
    """Play the kubelet of some machines for the time of a `with` block."""
    kubelet = Kubelet(plane, machines)
    try:
        yield kubelet
    finally:
        kubelet.close()


def end_container(
    cluster: Cluster, pod: str, *, code: int = 7, container: str = "train", namespace: str = "default", **ended: Any
) -> None:
    """Let a pod end: what a kubelet would report; `ended` is more of its state, such as message."""
    at = f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    state = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": at, "finishedAt": at, **ended}
    status = {"name": container, "ready": False, "restartCount": 0, "image": "x", "imageID": "x"}
    phase = "Failed" if code else "Succeeded"
    change = {"status": {"phase": phase, "containerStatuses": [{**status, "state": {"terminated": state}}]}}
    cluster.patch(POD, pod, change, namespace=namespace, subresource="status")


def lose_machine(cluster: Cluster, machine: str) -> None:
    """Take a machine out of service: what an operator, or a cloud, does with one that has died.

    Kubernetes, Non-graceful node shutdown (kubernetes.io/docs/concepts/cluster-administration/node-shutdown).
    """
    node = cluster.get(NODE, machine) or {}
    lost = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    cluster.patch(NODE, machine, {"spec": {"taints": [*node["spec"].get("taints", ()), lost]}})


def pod_names(cluster: Cluster, release: str) -> list[str]:
    """Names of a run's pods with GPUs, by number."""
    found = cluster.list(POD, namespace="default", labels={"app.kubernetes.io/instance": release})
    live = [member(pod) for pod in found if "deletionTimestamp" not in pod["metadata"]]
    return [each.name for each in sorted(live, key=lambda each: each.index or 0) if each.ranks]
