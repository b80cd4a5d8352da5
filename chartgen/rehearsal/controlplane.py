"""A real Kubernetes control plane as plain processes on the loopback interface."""

from __future__ import annotations

import base64
import copy
import json
import secrets
import socket
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chartgen.errors import ChartgenError, MissingToolError
from chartgen.programs import Progress
from chartgen.rehearsal import engines
from chartgen.rehearsal.processes import Processes

if TYPE_CHECKING:
    from typing_extensions import Self

    from chartgen.kube import Cluster

CONTEXT = "chartgen"
RUN_SECONDS = 7 * 86400.0  # a training run is meant to stay Running for as long as anybody looks
# A machine that renews its lease late is a fault of a cluster, but here only a sign that this machine is busy.
_LEASE_SECONDS = 3600
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # FIPS 186-4, D.1.2.3
_NODE_PORT = "{{ with NodePort }}"  # where kwok's stages write the port of its own server into a node
# Files of the folder, in which all processes run: the path of a socket has 107 bytes at most (unix(7)), and etcd takes
# only names in the form of host and port (its embed/config.go, checkHostURLs).
_ETCD, _ETCD_PEER = "unix://etcd.socket:1", "unix://etcd-peer.socket:1"
_UNROUTED = "192.0.2.1"  # RFC 5737: apiserver wants an address that is not loopback; nothing ever connects to it


class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, in a private folder.

    A context manager; several can run side by side. All of it ends with this process, also when it is killed.

    Args:
        run_seconds: How long a simulated pod of a Job runs before it succeeds. A pod's annotation
            `pod-complete.stage.kwok.x-k8s.io/delay` (such as "5s") sets its own.
        progress: Gets one line per step.
    """

    def __init__(self, *, run_seconds: float = RUN_SECONDS, progress: Progress | None = None) -> None:
        self._run_seconds = run_seconds
        self._say = progress or (lambda _: None)
        self._cluster: Cluster | None = None
        for name in engines.CONTROL_PLANE:
            engines.require(name)
        self.processes = Processes()
        self.folder = self.processes.folder
        self.kubeconfig = self.folder / "kubeconfig"
        self.server = ""
        try:
            self._start()
        except BaseException as error:
            self.__exit__(type(error))
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # What its end made fail elsewhere, such as a request, says less than how it ended.
        ended = self.processes.ended() if kind and issubclass(kind, ChartgenError) else None
        self.close()
        if ended:
            raise MissingToolError(ended)

    @property
    def cluster(self) -> Cluster:
        """A connection to it, made at the first use."""
        if self._cluster is None:
            from chartgen.kube import connect

            self._cluster = connect(kubeconfig=self.kubeconfig, context=CONTEXT)
        return self._cluster

    def close(self) -> None:
        """End all processes and remove the folder."""
        if self._cluster is not None:
            self._cluster.close()
        self.processes.close()

    def detach(self) -> None:
        """Let it outlive this process."""
        if self._cluster is not None:
            self._cluster.close()
        self.processes.detach()

    def restart_controller_manager(self) -> None:
        """Start kube-controller-manager anew, after CRDs were created.

        Its garbage collector looks for new kinds every 30 s only; until then it deletes nothing that they own.
        """
        self.processes.stop("kube-controller-manager")
        self._spawn_controller_manager()

    def _start(self) -> None:
        self._say("starting etcd and kube-apiserver")
        self._token = secrets.token_urlsafe(32)
        _write_private(self.folder / "tokens.csv", f'{self._token},chartgen,chartgen,"system:masters"\n')
        _write_private(self.folder / "accounts.pem", service_account_key())
        self._start_etcd()
        self._start_apiserver()
        self._say("starting kube-controller-manager, kube-scheduler and kwok")
        self._spawn_controller_manager()
        self.processes.spawn("kube-scheduler", [engines.require("kube-scheduler"), *self._manager_flags()])
        self._start_machines()
        self._wait_for_accounts()

    def _start_etcd(self) -> None:
        """Start etcd, which trusts whoever reaches it, on sockets in the private folder."""
        command: list[str | Path] = [
            engines.require("etcd"),
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={_ETCD}",
            f"--advertise-client-urls={_ETCD}",
            f"--listen-peer-urls={_ETCD_PEER}",
            f"--initial-advertise-peer-urls={_ETCD_PEER}",
            f"--initial-cluster=default={_ETCD_PEER}",
            "--unsafe-no-fsync",  # what is in it does not have to survive anything
            "--log-level=warn",
        ]
        # A socket that is bound is served: kube-apiserver, which asks for more, waits for the rest.
        self.processes.start("etcd", lambda _: command, ready=lambda _: (self.folder / "etcd.socket:1").is_socket())

    def _start_apiserver(self) -> None:
        certificates = self.folder / "apiserver"
        certificates.mkdir()

        def command(ports: Sequence[int]) -> list[str | Path]:
            return [
                engines.require("kube-apiserver"),
                f"--etcd-servers={_ETCD}",
                "--bind-address=127.0.0.1",
                f"--secure-port={ports[0]}",
                f"--cert-dir={certificates}",  # where it puts the self-signed certificate that it makes
                f"--advertise-address={_UNROUTED}",
                "--endpoint-reconciler-type=none",
                f"--token-auth-file={self.folder / 'tokens.csv'}",
                f"--service-account-key-file={self.folder / 'accounts.pem'}",
                f"--service-account-signing-key-file={self.folder / 'accounts.pem'}",
                "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                "--service-cluster-ip-range=10.0.0.0/16",
                "--authorization-mode=RBAC",
                "--anonymous-auth=false",
                "--profiling=false",
                "--allow-privileged=true",
                "--enable-priority-and-fairness=false",
                "--max-requests-inflight=0",
                "--max-mutating-requests-inflight=0",
            ]

        def ready(ports: Sequence[int]) -> bool:
            authority = certificates / "apiserver.crt"
            return authority.exists() and answers(f"https://127.0.0.1:{ports[0]}/readyz", authority, self._token)

        port = self.processes.start("kube-apiserver", command, ports=1, ready=ready, timeout=90)[0]
        self.server = f"https://127.0.0.1:{port}"
        _write_private(self.kubeconfig, self._kubeconfig())

    def _kubeconfig(self) -> str:
        authority = base64.b64encode((self.folder / "apiserver" / "apiserver.crt").read_bytes()).decode()
        cluster = {"server": self.server, "certificate-authority-data": authority}
        data = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": CONTEXT,
            "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT, "namespace": "default"}}],
            "clusters": [{"name": CONTEXT, "cluster": cluster}],
            "users": [{"name": CONTEXT, "user": {"token": self._token}}],
        }
        return json.dumps(data, indent=1)  # JSON is YAML

    def _manager_flags(self) -> list[str]:
        # Port 0 = no server of their own: one certificate and one race for a port less.
        flags = [f"--kubeconfig={self.kubeconfig}", "--secure-port=0", "--leader-elect=false"]
        return [*flags, "--kube-api-qps=5000", "--kube-api-burst=10000"]

    def _spawn_controller_manager(self) -> None:
        argv: list[str | Path] = [
            engines.require("kube-controller-manager"),
            *self._manager_flags(),
            f"--root-ca-file={self.folder / 'apiserver' / 'apiserver.crt'}",
            f"--service-account-private-key-file={self.folder / 'accounts.pem'}",
            f"--node-monitor-grace-period={_LEASE_SECONDS}s",
            "--pvclaimbinder-sync-period=2s",  # instead of 15 s: a claim that is bound late looks as one that never is
        ]
        self.processes.spawn("kube-controller-manager", argv)

    def _start_machines(self) -> None:
        """Start what stands for the kubelets: kwok, which listens nowhere, and a server of logs."""
        port = self._start_kubelet()
        config = self.folder / "stages.yaml"
        config.write_text("\n---\n".join(map(json.dumps, stages(self._run_seconds, port))), "utf-8")
        argv: list[str | Path] = [
            engines.require("kwok"),
            f"--kubeconfig={self.kubeconfig}",
            f"--config={config}",
            "--manage-all-nodes",
            f"--node-lease-duration-seconds={_LEASE_SECONDS}",
            "--node-ip=127.0.0.1",
        ]
        self.processes.spawn("kwok", argv)

    def _start_kubelet(self) -> int:
        """Start the kubelet of all machines, as far as the API server asks it; it does not verify its certificate."""
        script = Path(__file__).with_name("kubelet.py")
        files = [self.folder / "apiserver" / f"apiserver.{suffix}" for suffix in ("crt", "key")]

        def command(ports: Sequence[int]) -> list[str | Path]:
            return [sys.executable, "-I", "-S", script, str(ports[0]), *files]

        return self.processes.start("kubelet", command, ports=1, ready=lambda ports: listens(ports[0]))[0]

    def _wait_for_accounts(self) -> None:
        """Wait for the controller manager's first sign of life, without which no pod can be created."""
        address = f"{self.server}/api/v1/namespaces/default/serviceaccounts/default"
        authority = self.folder / "apiserver" / "apiserver.crt"
        self.processes.wait(
            "the default ServiceAccount",
            lambda: answers(address, authority, self._token),
            log="kube-controller-manager",
        )


def stages(run_seconds: float, kubelet: int) -> list[dict[str, Any]]:
    """Return kwok's stages: pods start at once, stop in a second and, when a Job owns them, succeed after a while.

    Those that prepare data succeed at once, so that what needs the data can follow. Those that a Job still counts fail
    when they are stopped, as under a kubelet: a Job with a podFailurePolicy waits for that before it lets them go.

    Args:
        run_seconds: How long a pod of a Job runs.
        kubelet: Port of the kubelet of all machines.
    """
    seconds = {"pod-complete": run_seconds, "pod-delete": 1.0, "pod-stop": 1.0}
    found = engines.documents("kwok", "stages.json")
    complete = next(stage for stage in found if stage["metadata"]["name"] == "pod-complete")
    data = copy.deepcopy(complete)
    data["metadata"]["name"] = "pod-complete-data"
    for stage, operator in ((complete, "NotIn"), (data, "In")):
        condition = {"key": '.metadata.labels["app.kubernetes.io/component"]', "operator": operator, "values": ["data"]}
        stage["spec"]["selector"]["matchExpressions"].append(condition)
    found += [data, _stop_stage(complete)]
    for stage in found:
        template = stage["spec"].get("next", {}).get("statusTemplate", "")
        if _NODE_PORT in template:
            stage["spec"]["next"]["statusTemplate"] = template.replace(_NODE_PORT, f"{{{{ with {kubelet} }}}}")
        name, delay = stage["metadata"]["name"], stage["spec"].get("delay")
        if delay is not None and name.startswith("pod-"):
            delay["durationMilliseconds"] = int(seconds.get(name, 0.0) * 1000)
            delay.pop("jitterDurationMilliseconds", None)  # an upper bound of 5 s, so it would cut a longer delay
            delay.pop("jitterDurationFrom", None)  # the whole grace period, when a pod is deleted
    return found


def _stop_stage(complete: dict[str, Any]) -> dict[str, Any]:
    """Make the stage of pods that are stopped and held by a finalizer, from that of pods that succeed."""
    status = complete["spec"]["next"]["statusTemplate"]
    for success, failure in (("exitCode: 0", "exitCode: 143"), ("Completed", "Error"), ("Succeeded", "Failed")):
        status = status.replace(success, failure)
    held = [{"key": f".metadata.{name}", "operator": "Exists"} for name in ("deletionTimestamp", "finalizers")]
    running = {"key": ".status.phase", "operator": "In", "values": ["Running"]}
    spec = {
        "resourceRef": complete["spec"]["resourceRef"],
        "selector": {"matchExpressions": [*held, running]},
        "delay": {},
        "next": {"statusTemplate": status},
    }
    return {**complete, "metadata": {"name": "pod-stop"}, "spec": spec}


def service_account_key() -> str:
    """Make a private key that signs the tokens of service accounts.

    It is an elliptic curve key (P-256) in SEC1 form, RFC 5915, without the optional public key: Go derives that, so
    the standard library is enough.
    """
    number = secrets.randbelow(_P256_ORDER - 1) + 1
    # SEQUENCE { INTEGER 1, OCTET STRING (32), [0] { OBJECT IDENTIFIER prime256v1 } }
    der = bytes.fromhex("30310201010420") + number.to_bytes(32, "big") + bytes.fromhex("a00a06082a8648ce3d030107")
    text = base64.b64encode(der).decode()
    lines = [text[start : start + 64] for start in range(0, len(text), 64)]
    return "\n".join(["-----BEGIN EC PRIVATE KEY-----", *lines, "-----END EC PRIVATE KEY-----", ""])


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, "utf-8")


def listens(port: int) -> bool:
    """Report whether a port of this machine takes connections."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True


def answers(address: str, authority: Path | None = None, token: str = "") -> bool:
    """Report whether a GET gives 200; loopback only, so no proxy is asked."""
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    try:
        if authority:
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(authority))))
        request = urllib.request.Request(address)  # noqa: S310 - built above from http(s)://127.0.0.1
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.build_opener(*handlers).open(request, timeout=2) as reply:
            return bool(reply.status == 200)
    except (OSError, ssl.SSLError, urllib.error.URLError):
        return False
