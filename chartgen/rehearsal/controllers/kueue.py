"""Kueue outside of a cluster: webhooks, and the conversion of its older API versions."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from chartgen.data.compatibility import lock
from chartgen.kube import CRD, SECRET, Kind
from chartgen.rehearsal import engines
from chartgen.rehearsal.controllers import webhooks
from chartgen.rehearsal.controllers.devices import CLASSES
from chartgen.rehearsal.controlplane import ControlPlane, namespace_object
from chartgen.rehearsal.processes import answers

_NAMESPACE, _SERVICE, _SECRET_NAME = "kueue-system", "kueue-webhook-service", "kueue-webhook-server-cert"
# Kueue's own defaults without the integrations whose controllers no target of chartgen uses. Integrations that are off
# by default (`integrations` of data/compat.yaml) are added, and rehearsals report them.
_FRAMEWORKS = (
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "kubeflow.org/mpijob",
    "trainer.kubeflow.org/trainjob",
    "ray.io/rayjob",
    "ray.io/raycluster",
    "pod",
    "deployment",
    "statefulset",
)
# The certificate rotator waits until these CRDs have a conversion webhook (Kueue, pkg/util/cert).
_CONVERTED = ("clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads")
_POD_OWNERS = ("pods", "deployments", "statefulsets", "jobs")  # not watched in system namespaces
_FLAVOR = Kind("kueue.x-k8s.io/v1beta2", "ResourceFlavor", "resourceflavors", namespaced=False)


def start(plane: ControlPlane) -> None:
    """Start Kueue and wait until its webhooks answer."""
    folder = plane.folder / "kueue"
    folder.mkdir()
    client = webhooks.serve_by_service(_NAMESPACE, _SERVICE)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": _NAMESPACE, "name": _SECRET_NAME}}
    service = webhooks.loopback_service(_NAMESPACE, _SERVICE)
    plane.cluster.apply([namespace_object(_NAMESPACE), service, secret])

    def command(ports: Sequence[int]) -> list[str | Path]:
        _apply_webhooks(plane, client(ports[0]))
        config = plane.folder / "kueue.json"
        config.write_text(json.dumps(_settings(ports, folder, plane.device_classes)), "utf-8")
        return [
            engines.require("kueue"),
            f"--kubeconfig={plane.kubeconfig}",
            f"--config={config}",
            # The visibility server writes to a fixed folder under / and ends the process on failure.
            "--feature-gates=VisibilityOnDemand=false",
        ]

    def ready(ports: Sequence[int]) -> bool:
        serves = _has_certificate(plane, folder) and answers(f"http://127.0.0.1:{ports[1]}/readyz")
        return serves and webhooks.accepts(plane, _FLAVOR, {"metadata": {"name": "probe"}})

    plane.processes.start("kueue", command, ports=2, ready=ready)


def _settings(ports: Sequence[int], folder: Path, classes: Iterable[str]) -> dict[str, object]:
    mapped = [{"name": each, "deviceClassNames": [each]} for each in dict.fromkeys((*CLASSES, *classes))]
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ports[1]}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": ports[0], "certDir": str(folder)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": True},
        "clientConnection": {"qps": 2000, "burst": 4000},
        "resources": {"deviceClassMappings": mapped},
        "integrations": {"frameworks": [*_FRAMEWORKS, *(row["framework"] for row in lock()["integrations"])]},
    }


def _apply_webhooks(plane: ControlPlane, client: webhooks.Client) -> None:
    webhook = {"clientConfig": client("/convert"), "conversionReviewVersions": ["v1"]}
    for plural in _CONVERTED:
        change = {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}
        plane.cluster.patch(CRD, f"{plural}.kueue.x-k8s.io", change)
    found = webhooks.webhooks_of("kueue", "kueue-")
    webhooks.redirect(found, client)
    # System pods are left out, as by its installer, so that a stuck Kueue cannot block them.
    for each in (webhook for configuration in found for webhook in configuration["webhooks"]):
        if any(resource in _POD_OWNERS for rule in each["rules"] for resource in rule["resources"]):
            system = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", _NAMESPACE]}
            each["namespaceSelector"] = {"matchExpressions": [system]}
    plane.cluster.apply(found)


def _has_certificate(plane: ControlPlane, folder: Path) -> bool:
    """Copy the certificate from the rotator's Secret, as a volume mount would; report whether it exists."""
    if (folder / "tls.crt").exists():
        return True
    secret = plane.cluster.get(SECRET, _SECRET_NAME, _NAMESPACE) or {}
    data = secret.get("data") or {}
    if not data.get("tls.crt"):
        return False
    for name in ("tls.key", "tls.crt"):  # the certificate last: the rotator waits for that file only
        (folder / name).touch(mode=0o600)
        (folder / name).write_bytes(base64.b64decode(data[name]))
    return True
