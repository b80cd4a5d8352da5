"""Job and queue controllers outside of a cluster, with their real webhooks."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from chartgen.cluster import CRD, SECRET, ClusterError, Kind, Object
from chartgen.errors import Problem, UsageError, did_you_mean
from chartgen.rehearsal import engines
from chartgen.rehearsal.controlplane import ControlPlane, answers

# Kueue's own defaults, without the integrations whose controllers no target of chartgen uses.
_KUEUE_FRAMEWORKS = (
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "kubeflow.org/mpijob",
    "trainer.kubeflow.org/trainjob",
    "pod",
    "deployment",
    "statefulset",
)
# The CRDs for which its certificate rotator waits until they have a conversion webhook (Kueue, pkg/util/cert).
_KUEUE_CONVERTED = ("clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads")
_POD_OWNERS = ("pods", "deployments", "statefulsets", "jobs")  # not watched in the namespaces of the system itself
_FLAVOR = Kind("kueue.x-k8s.io/v1beta2", "ResourceFlavor", "resourceflavors", namespaced=False)


def start_controllers(plane: ControlPlane, names: Iterable[str], *, progress: engines.Progress | None = None) -> None:
    """Start controllers and wait until their webhooks answer.

    Args:
        plane: A running control plane.
        names: Of `jobset` and `kueue`.
        progress: Gets one line per controller.

    Raises:
        UsageError: An unknown name.
        MissingToolError: A controller is not built, or does not become ready.
    """
    wanted = set(names)
    for name in sorted(wanted - set(_START)):
        raise UsageError(Problem(f"unknown controller {name!r}", hint=did_you_mean(name, _START)))
    if wanted:
        _install_crds(plane, wanted)
    for name, start in _START.items():
        if name in wanted:
            if progress:
                progress(f"starting {name}")
            start(plane)


def _install_crds(plane: ControlPlane, names: Iterable[str]) -> None:
    """Create all CRDs before any controller starts: JobSet, Kueue and the garbage collector look for them then."""
    crds = [crd for name in names for crd in engines.documents(name, "crds.json")]
    plane.cluster.apply(crds)
    for crd in crds:
        served = next(version["name"] for version in crd["spec"]["versions"] if version["storage"])
        plane.cluster.kind(f"{crd['spec']['group']}/{served}", crd["spec"]["names"]["kind"])
    plane.restart_controller_manager()


def _start_jobset(plane: ControlPlane) -> None:
    folder = _certificate_folder(plane, "jobset")
    # The API server's self-signed certificate is valid for 127.0.0.1, and its file holds the authority that signed it.
    for suffix in ("crt", "key"):
        shutil.copyfile(plane.folder / "apiserver" / f"apiserver.{suffix}", folder / f"tls.{suffix}")
    authority = base64.b64encode((folder / "tls.crt").read_bytes()).decode()
    plane.cluster.apply([_namespace("jobset-system")])

    def command(ports: Sequence[int]) -> list[str | Path]:
        webhooks = _webhooks("jobset", lambda path: _by_url(ports[0], path, authority))
        plane.cluster.apply(webhooks)
        settings = {
            "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
            "kind": "Configuration",
            "internalCertManagement": {"enable": False},
            "leaderElection": {"leaderElect": False},
            "webhook": {"host": "127.0.0.1", "port": ports[0], "certDir": str(folder)},
        }
        flags = ["--metrics-bind-address=0", f"--health-probe-bind-address=127.0.0.1:{ports[1]}"]
        return [*_manager("jobset", plane, settings), *flags]

    plane.processes.start("jobset", command, ports=2, ready=_is_ready)


def _start_kueue(plane: ControlPlane) -> None:
    folder = _certificate_folder(plane, "kueue")
    plane.cluster.apply([_namespace("kueue-system"), *_kueue_service()])

    def command(ports: Sequence[int]) -> list[str | Path]:
        webhook = {"clientConfig": _by_service(ports[0], "/convert"), "conversionReviewVersions": ["v1"]}
        for plural in _KUEUE_CONVERTED:
            change = {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}
            plane.cluster.patch(CRD, f"{plural}.kueue.x-k8s.io", change)
        plane.cluster.apply(_webhooks("kueue", lambda path: _by_service(ports[0], path)))
        settings = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"127.0.0.1:{ports[1]}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"host": "127.0.0.1", "port": ports[0], "certDir": str(folder)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": True},
            "clientConnection": {"qps": 300, "burst": 500},
            "integrations": {"frameworks": list(_KUEUE_FRAMEWORKS)},
        }
        # The visibility server wants to write to a fixed folder under / and ends the process when it cannot.
        return [*_manager("kueue", plane, settings), "--feature-gates=VisibilityOnDemand=false"]

    def ready(ports: Sequence[int]) -> bool:
        return _has_certificate(plane, folder) and _is_ready(ports) and _webhook_answers(plane)

    plane.processes.start("kueue", command, ports=2, ready=ready)


_START: dict[str, Callable[[ControlPlane], None]] = {"jobset": _start_jobset, "kueue": _start_kueue}


def _certificate_folder(plane: ControlPlane, name: str) -> Path:
    folder = plane.folder / name
    folder.mkdir()
    return folder


def _manager(name: str, plane: ControlPlane, settings: Object) -> list[str | Path]:
    config = plane.folder / f"{name}.json"
    config.write_text(json.dumps(settings), "utf-8")
    return [engines.require(name), f"--kubeconfig={plane.kubeconfig}", f"--config={config}"]


def _is_ready(ports: Sequence[int]) -> bool:
    return answers(f"http://127.0.0.1:{ports[1]}/readyz")


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _by_url(port: int, path: str, authority: str) -> Object:
    return {"url": f"https://127.0.0.1:{port}{path}", "caBundle": authority}


def _by_service(port: int, path: str) -> Object:
    return {"service": {"namespace": "kueue-system", "name": "kueue-webhook-service", "path": path, "port": port}}


def _webhooks(name: str, client: Callable[[str], Object]) -> list[Object]:
    """Give the webhook configurations of a module, named as its installer names them, with another way to reach it."""
    found = engines.documents(name, "webhooks.json")
    for configuration in found:
        configuration["metadata"] = {"name": f"{name}-{configuration['metadata']['name']}"}
        for webhook in configuration["webhooks"]:
            webhook["clientConfig"] = client(webhook["clientConfig"]["service"]["path"])
            _narrow(name, webhook)
    return found


def _narrow(name: str, webhook: dict[str, Any]) -> None:
    """Add the selectors that the installers add, so that a stuck controller cannot stop the others' pods."""
    resources = {resource for rule in webhook["rules"] for resource in rule["resources"]}
    if name == "jobset" and "pods" in resources:
        exists = {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}
        webhook["objectSelector"] = {"matchExpressions": [exists]}
    if name == "kueue" and resources & set(_POD_OWNERS):
        system = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "kueue-system"]}
        webhook["namespaceSelector"] = {"matchExpressions": [system]}


def _kueue_service() -> list[Object]:
    """Give the Service that leads the API server to this machine, and the Secret that the rotator fills."""
    service = {"namespace": "kueue-system", "name": "kueue-webhook-service"}
    secret = {"namespace": "kueue-system", "name": "kueue-webhook-server-cert"}
    spec = {"type": "ExternalName", "externalName": "localhost"}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": service, "spec": spec},
        {"apiVersion": "v1", "kind": "Secret", "metadata": secret},
    ]


def _has_certificate(plane: ControlPlane, folder: Path) -> bool:
    """Do what a volume mount does in a cluster: copy the certificate from the Secret, once the rotator has made it."""
    if (folder / "tls.crt").exists():
        return True
    secret = plane.cluster.get(SECRET, "kueue-webhook-server-cert", "kueue-system") or {}
    data = secret.get("data") or {}
    if not data.get("tls.crt"):
        return False
    for name in ("tls.key", "tls.crt"):  # the certificate last: the rotator waits for that file alone
        (folder / name).touch(mode=0o600)
        (folder / name).write_bytes(base64.b64decode(data[name]))
    return True


def _webhook_answers(plane: ControlPlane) -> bool:
    """Tell whether the API server reaches the webhooks, authority and all."""
    flavor = {"apiVersion": _FLAVOR.api_version, "kind": _FLAVOR.name, "metadata": {"name": "probe"}}
    try:
        plane.cluster.create(_FLAVOR, flavor, dry_run=True)
    except ClusterError:
        return False
    return True
