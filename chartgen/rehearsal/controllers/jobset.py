"""JobSet outside of a cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from chartgen.kube import JOBSET, Object
from chartgen.rehearsal import engines
from chartgen.rehearsal.controllers import webhooks
from chartgen.rehearsal.controlplane import ControlPlane

_POD = {"restartPolicy": "Never", "containers": [{"name": "probe", "image": "registry.invalid/probe"}]}
_JOB = {"name": "probe", "template": {"spec": {"template": {"spec": _POD}}}}
_PROBE: Object = {"metadata": {"name": "probe", "namespace": "default"}, "spec": {"replicatedJobs": [_JOB]}}


def start(plane: ControlPlane) -> None:
    """Start JobSet and wait until its webhooks answer."""
    folder = plane.folder / "jobset"
    client = webhooks.serve_by_url(plane, folder)
    plane.cluster.apply([webhooks.namespace_object("jobset-system")])

    def command(ports: Sequence[int]) -> list[str | Path]:
        _apply_webhooks(plane, client(ports[0]))
        settings = {
            "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
            "kind": "Configuration",
            "internalCertManagement": {"enable": False},
            "leaderElection": {"leaderElect": False},
            "webhook": {"host": "127.0.0.1", "port": ports[0], "certDir": str(folder)},
        }
        config = plane.folder / "jobset.json"
        config.write_text(json.dumps(settings), "utf-8")
        return [
            engines.require("jobset"),
            f"--kubeconfig={plane.kubeconfig}",
            f"--config={config}",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address=127.0.0.1:{ports[1]}",
        ]

    plane.processes.start("jobset", command, ports=2, ready=partial(webhooks.serves, plane, JOBSET, _PROBE))


def _apply_webhooks(plane: ControlPlane, client: webhooks.Client) -> None:
    found = engines.engine_objects("jobset", "webhooks.json")
    for configuration in found:
        configuration["metadata"] = {"name": f"jobset-{configuration['metadata']['name']}"}
        webhooks.redirect(configuration, client)
        for webhook in configuration["webhooks"]:
            if any("pods" in rule["resources"] for rule in webhook["rules"]):
                # Like its installer, so that a stuck JobSet controller cannot block unrelated pods.
                exists = {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}
                webhook["objectSelector"] = {"matchExpressions": [exists]}
    plane.cluster.apply(found)
