"""The Kubeflow training-operator v1 outside of a cluster, for PyTorchJobs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from chartgen.kube import PYTORCHJOB
from chartgen.rehearsal import engines
from chartgen.rehearsal.controllers import webhooks
from chartgen.rehearsal.controlplane import ControlPlane

_NAMESPACE = "kubeflow"
# Its certificate rotator cannot be disabled; it fills this unused Secret.
_SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"namespace": _NAMESPACE, "name": "training-operator-webhook-cert"},
}


def start(plane: ControlPlane) -> None:
    """Start the training-operator and wait until its webhook answers."""
    # Its certificate is expected below its TMPDIR (controller-runtime's default).
    client = webhooks.serve_by_url(plane, plane.folder / "k8s-webhook-server" / "serving-certs")
    plane.cluster.apply([webhooks.namespace_object(_NAMESPACE), _SECRET])

    def command(ports: Sequence[int]) -> list[str | Path]:
        _apply_webhooks(plane, client(ports[0]))
        return [
            engines.require("training-operator"),
            f"--kubeconfig={plane.kubeconfig}",
            "--enable-scheme=pytorchjob",
            f"--webhook-server-port={ports[0]}",
            f"--health-probe-bind-address=127.0.0.1:{ports[1]}",
            "--metrics-bind-address=0",
            "--kube-api-qps=300",
            "--kube-api-burst=500",
        ]

    plane.processes.start(
        "training-operator", command, ports=2, ready=partial(webhooks.serves, plane, PYTORCHJOB, _PROBE)
    )


_PROBE = {
    "metadata": {"name": "probe"},
    "spec": {
        "pytorchReplicaSpecs": {
            "Worker": {"template": {"spec": {"containers": [{"name": "pytorch", "image": "registry.invalid/probe"}]}}}
        }
    },
}


def _apply_webhooks(plane: ControlPlane, client: webhooks.Client) -> None:
    found = engines.engine_objects("training-operator", "webhooks.json")
    for configuration in found:
        # Not the installer's name: under that name the rotator would replace the authority.
        configuration["metadata"] = {"name": f"training-operator-{configuration['metadata']['name']}"}
        webhooks.redirect(configuration, client)
        configuration["webhooks"] = [
            webhook
            for webhook in configuration["webhooks"]
            if any(PYTORCHJOB.plural in rule["resources"] for rule in webhook["rules"])
        ]
    plane.cluster.apply(found)
