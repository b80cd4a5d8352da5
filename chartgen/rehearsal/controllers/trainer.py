"""Kubeflow Trainer outside of a cluster, for TrainJobs; it makes JobSets, so the JobSet controller runs beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from chartgen.kube import TRAINING_RUNTIME
from chartgen.rehearsal import engines
from chartgen.rehearsal.controllers import webhooks
from chartgen.rehearsal.controlplane import ControlPlane


def start(plane: ControlPlane) -> None:
    """Start Trainer and wait until its webhooks answer."""
    # Its certificate is expected below its TMPDIR (controller-runtime's default), like that of the training operator.
    folder = plane.folder / "trainer"
    client = webhooks.serve_by_url(plane, folder / "k8s-webhook-server" / "serving-certs")
    plane.cluster.apply([webhooks.namespace_object("kubeflow-system")])

    def command(ports: Sequence[int]) -> list[str | Path]:
        _apply_webhooks(plane, client(ports[0]))
        config = folder / "config.json"
        config.write_text(json.dumps(_settings(ports)), "utf-8")
        return [
            "env",
            f"TMPDIR={folder}",
            f"KUBECONFIG={plane.kubeconfig}",
            engines.require("trainer"),
            f"--config={config}",
        ]

    plane.processes.start("trainer", command, ports=2, ready=partial(webhooks.serves, plane, TRAINING_RUNTIME, _PROBE))


_PROBE = {"metadata": {"name": "probe"}, "spec": {"mlPolicy": {"numNodes": 1}}}


def _settings(ports: Sequence[int]) -> dict[str, object]:
    return {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "webhook": {"host": "127.0.0.1", "port": ports[0]},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{ports[1]}"},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
        "certManagement": {"enable": False},
        "clientConnection": {"qps": 300, "burst": 500},
    }


def _apply_webhooks(plane: ControlPlane, client: webhooks.Client) -> None:
    found = engines.engine_objects("trainer", "webhooks.json")
    for configuration in found:
        configuration["metadata"] = {"name": f"trainer-{configuration['metadata']['name']}"}
        webhooks.redirect(configuration, client)
    plane.cluster.apply(found)
