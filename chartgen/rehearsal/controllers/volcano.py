"""Volcano outside of a cluster: its admission, its controllers and its scheduler, beside kube-scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chartgen.kube import VOLCANO_QUEUE, Object
from chartgen.rehearsal import engines
from chartgen.rehearsal.controllers import webhooks
from chartgen.rehearsal.controlplane import ControlPlane, namespace_object
from chartgen.rehearsal.processes import answers

_NAMESPACE = "volcano-system"
_INSTALLER = "volcano-webhook-manager"  # the engine with the installer's manifests
_DEFAULT_QUEUE = "default"
_FAST = ("--kube-api-qps=2000", "--kube-api-burst=2000")  # the installer's flags of the scheduler


def start(plane: ControlPlane) -> None:
    """Start Volcano; wait until its webhooks answer and its own queues are open."""
    plane.cluster.apply([namespace_object(_NAMESPACE)])
    _start_admission(plane)
    _start_manager(plane)
    _start_scheduler(plane)


def _installed(kind: str) -> list[Object]:
    """Return the installer's objects whose kind ends with `kind`."""
    return [item for item in engines.engine_objects(_INSTALLER, "install.json") if item["kind"].endswith(kind)]


def _start_admission(plane: ControlPlane) -> None:
    folder = plane.folder / "volcano"
    client = webhooks.serve_by_url(plane, folder)

    def command(ports: Sequence[int]) -> list[str | Path]:
        found = _installed("WebhookConfiguration")
        paths = [hook["clientConfig"]["service"]["path"] for each in found for hook in each["webhooks"]]
        for configuration in found:
            webhooks.redirect(configuration, client(ports[0]))
        plane.cluster.apply(found)
        return [
            engines.require(_INSTALLER),
            f"--kubeconfig={plane.kubeconfig}",
            *_FAST,
            f"--enabled-admission={','.join(paths)}",
            "--listen-address=127.0.0.1",
            f"--port={ports[0]}",
            f"--webhook-url=https://127.0.0.1:{ports[0]}",  # required but unused: see the applied configuration
            f"--tls-cert-file={folder / 'tls.crt'}",
            f"--tls-private-key-file={folder / 'tls.key'}",
            f"--ca-cert-file={folder / 'tls.crt'}",
        ]

    probe = {"metadata": {"name": "probe"}, "spec": {}}
    plane.processes.start(_INSTALLER, command, ports=1, ready=lambda _: webhooks.accepts(plane, VOLCANO_QUEUE, probe))


def _start_manager(plane: ControlPlane) -> None:
    def command(ports: Sequence[int]) -> list[str | Path]:
        return [
            engines.require("volcano-controller-manager"),
            f"--kubeconfig={plane.kubeconfig}",
            *_FAST,
            "--leader-elect=false",
            "--enable-healthz",
            f"--healthz-address=127.0.0.1:{ports[0]}",
        ]

    plane.processes.start("volcano-controller-manager", command, ports=1, ready=_is_healthy)


def _start_scheduler(plane: ControlPlane) -> None:
    config = plane.folder / "volcano" / "scheduler.conf"
    key = "volcano-scheduler.conf"
    config.write_text(next(item["data"][key] for item in _installed("ConfigMap") if key in item["data"]), "utf-8")

    def command(ports: Sequence[int]) -> list[str | Path]:
        return [
            engines.require("volcano-scheduler"),
            f"--kubeconfig={plane.kubeconfig}",
            *_FAST,
            f"--scheduler-conf={config}",
            "--schedule-period=200ms",  # instead of 1 s: a throw-away cluster should be fast
            "--leader-elect=false",
            "--cache-dumper=false",
            "--enable-healthz",
            f"--healthz-address=127.0.0.1:{ports[0]}",
        ]

    def ready(ports: Sequence[int]) -> bool:
        queue = plane.cluster.get(VOLCANO_QUEUE, _DEFAULT_QUEUE) or {}
        return queue.get("status", {}).get("state") == "Open" and _is_healthy(ports)

    plane.processes.start("volcano-scheduler", command, ports=1, ready=ready)


def _is_healthy(ports: Sequence[int]) -> bool:
    return answers(f"http://127.0.0.1:{ports[0]}/healthz")
