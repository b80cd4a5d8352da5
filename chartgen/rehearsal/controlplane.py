"""A real Kubernetes control plane as plain processes on the loopback interface."""

from __future__ import annotations

import base64
import json
import secrets
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chartgen.errors import ChartgenError, MissingToolError
from chartgen.kube import connect
from chartgen.programs import Progress
from chartgen.rehearsal import engines
from chartgen.rehearsal.foreign import register
from chartgen.rehearsal.processes import Processes, listens
from chartgen.rehearsal.simulated_nodes import stages

if TYPE_CHECKING:
    from typing_extensions import Self

    from chartgen.kube import Cluster, Object

CONTEXT = "chartgen"
RUN_SECONDS = 7 * 86400.0  # a simulated training run stays Running for the life of a sandbox
# In a cluster a late heartbeat means a broken machine, but here only that this host is busy.
_GRACE_SECONDS = 3600
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # FIPS 186-4, D.1.2.3
# Relative paths in the processes' working folder: a socket path has at most 107 bytes (unix(7)), and etcd accepts only
# names in the form of host and port (its embed/config.go, checkHostURLs).
_ETCD, _ETCD_PEER = "unix://etcd.socket:1", "unix://etcd-peer.socket:1"
_UNROUTED = "192.0.2.1"  # RFC 5737: apiserver requires a non-loopback address; nothing ever connects to it
# kube-apiserver takes half of a rehearsal's processor time, and at Go's own setting (100) a quarter of that to collect
# garbage; from 1 GiB on, it collects as often as it must.
_GO = {"GOGC": "200", "GOMEMLIMIT": "1500MiB"}
_TIMEOUT = 60.0  # seconds for an answer: an API server that is only slow is no error
# Without it the API server takes no pods. kube-controller-manager makes it too, but only after its start.
_ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}}


class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, in a private folder.

    A context manager; several can run side by side. All processes end with this one, even when it is killed.

    Args:
        run_seconds: Seconds for which a simulated pod of a Job runs before it succeeds. A pod's annotation
            `pod-complete.stage.kwok.x-k8s.io/delay` (such as "5s") overrides it.
        device_classes: Device classes that Kueue counts as resources of the same name, besides the usual ones.
        crds: Created before kube-controller-manager starts, which discovers later ones only every 30 s.
    """

    def __init__(
        self,
        *,
        run_seconds: float = RUN_SECONDS,
        device_classes: tuple[str, ...] = (),
        crds: Iterable[Object] = (),
        progress: Progress | None = None,
    ) -> None:
        self._run_seconds = run_seconds
        self.device_classes = device_classes
        self.crds = list(crds)
        self._report = progress or (lambda _: None)
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
        # The end of a process explains more than its consequences elsewhere, such as a failed request.
        ended = self.processes.ended() if kind and issubclass(kind, ChartgenError) else None
        self.close()
        if ended:
            raise MissingToolError(ended)

    @property
    def cluster(self) -> Cluster:
        """Return the connection to it."""
        assert self._cluster  # noqa: S101 - made at its start
        return self._cluster

    def close(self) -> None:
        """End all processes and remove the folder."""
        if self._cluster is not None:
            self._cluster.close()
        self.processes.close()

    def detach(self) -> None:
        """Let the control plane outlive this process."""
        if self._cluster is not None:
            self._cluster.close()
        self.processes.detach()

    def add_crds(self, crds: Iterable[Object]) -> None:
        """Create the CRDs that are missing, and restart kube-controller-manager.

        Its garbage collector discovers new kinds only every 30 s; until then it does not delete objects they own.
        """
        names = {crd["metadata"]["name"] for crd in self.crds}
        missing = [crd for crd in crds if crd["metadata"]["name"] not in names]
        if missing:
            register(self.cluster, missing)
            self.crds += missing
            self.processes.stop("kube-controller-manager")
            self._spawn_controller_manager()

    def _start(self) -> None:
        self._report("starting etcd and kube-apiserver")
        self._token = secrets.token_urlsafe(32)
        _write_private(self.folder / "tokens.csv", f'{self._token},chartgen,chartgen,"system:masters"\n')
        _write_private(self.folder / "accounts.pem", service_account_key())
        self._start_etcd()
        self._start_apiserver()
        self._report("starting kube-controller-manager, kube-scheduler and kwok")
        self.processes.spawn("kube-scheduler", [engines.require("kube-scheduler"), *self._manager_flags()])
        self._start_machines()
        register(self.cluster, self.crds)
        self._spawn_controller_manager()
        self.cluster.apply([namespace_object("default"), _ACCOUNT])

    def _start_etcd(self) -> None:
        """Start etcd, without authentication, on sockets in the private folder."""
        command: list[str | Path] = [
            engines.require("etcd"),
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={_ETCD}",
            f"--advertise-client-urls={_ETCD}",
            f"--listen-peer-urls={_ETCD_PEER}",
            f"--initial-advertise-peer-urls={_ETCD_PEER}",
            f"--initial-cluster=default={_ETCD_PEER}",
            "--unsafe-no-fsync",  # its data need not survive a crash
            "--log-level=warn",
        ]
        # A bound socket is enough: kube-apiserver waits for the rest.
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
                f"--cert-dir={certificates}",  # location of its new self-signed certificate
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
                "--disable-admission-plugins=TaintNodesByCondition",  # machines are created Ready
                "--enable-priority-and-fairness=false",
                "--max-requests-inflight=0",
                "--max-mutating-requests-inflight=0",
            ]

        def ready(ports: Sequence[int]) -> bool:
            if not (certificates / "apiserver.crt").exists():
                return False
            self.server = f"https://127.0.0.1:{ports[0]}"
            _write_private(self.kubeconfig, self._kubeconfig())
            try:
                self._cluster = connect(kubeconfig=self.kubeconfig, context=CONTEXT, timeout=_TIMEOUT)
            except ChartgenError:
                return False
            return True

        self.processes.start("kube-apiserver", command, ports=1, ready=ready, env=_GO)

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
        # Port 0 = no server: saves a certificate and a race for a port.
        flags = [f"--kubeconfig={self.kubeconfig}", "--secure-port=0", "--leader-elect=false"]
        return [*flags, "--kube-api-qps=5000", "--kube-api-burst=10000"]

    def _spawn_controller_manager(self) -> None:
        argv: list[str | Path] = [
            engines.require("kube-controller-manager"),
            *self._manager_flags(),
            f"--root-ca-file={self.folder / 'apiserver' / 'apiserver.crt'}",
            f"--service-account-private-key-file={self.folder / 'accounts.pem'}",
            f"--node-monitor-grace-period={_GRACE_SECONDS}s",
            # each would write to every machine, or list the addresses of all pods after each pod
            "--controllers=*,-ttl-controller,-endpoints-controller,-endpointslice-mirroring-controller",
            "--endpointslice-updates-batch-period=5s",
            "--pvclaimbinder-sync-period=2s",  # instead of 15 s: a late binding looks like a missing volume
        ]
        self.processes.spawn("kube-controller-manager", argv)

    def _start_machines(self) -> None:
        """Start the replacement of the kubelets: kwok, without an open port, and a log server."""
        port = self._start_kubelet()
        config = self.folder / "stages.yaml"
        config.write_text("\n---\n".join(map(json.dumps, stages(self._run_seconds, port))), "utf-8")
        argv: list[str | Path] = [
            engines.require("kwok"),
            f"--kubeconfig={self.kubeconfig}",
            f"--config={config}",
            "--manage-all-nodes",
            "--node-lease-duration-seconds=0",  # a machine's status is its heartbeat
            "--node-ip=127.0.0.1",
        ]
        self.processes.spawn("kwok", argv)

    def _start_kubelet(self) -> int:
        """Start the log server, which the API server uses as kubelet of all machines without TLS verification."""
        script = Path(__file__).with_name("kubelet.py")
        files = [self.folder / "apiserver" / f"apiserver.{suffix}" for suffix in ("crt", "key")]

        def command(ports: Sequence[int]) -> list[str | Path]:
            return [sys.executable, "-I", "-S", script, str(ports[0]), *files]

        return self.processes.start("kubelet", command, ports=1, ready=lambda ports: listens(ports[0]))[0]


def namespace_object(name: str) -> Object:
    """Return the manifest of a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def service_account_key() -> str:
    """Return a new private key that signs the tokens of service accounts.

    It is an elliptic curve key (P-256) in SEC1 form, RFC 5915, without the optional public key, which Go derives;
    thus the standard library is enough.
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
