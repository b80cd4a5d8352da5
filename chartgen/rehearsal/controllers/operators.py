"""Controllers of runs that are one program outside of a cluster, one row each.

KubeRay reads the state of a Ray job from Ray's dashboard, which simulated machines lack: it makes the cluster of a run
and its submitter, and never sees the job. Its webhooks are off by default, as in its installer; the MPI operator has
none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chartgen.helm.yaml import load
from chartgen.kube import JOBSET, PYTORCHJOB, TRAINING_RUNTIME, VOLCANO_JOB, VOLCANO_QUEUE, Kind, Object
from chartgen.rehearsal import engines
from chartgen.rehearsal.controllers import webhooks
from chartgen.rehearsal.controlplane import ControlPlane, namespace_object
from chartgen.rehearsal.processes import answers

_API = ("--kube-api-qps=300", "--kube-api-burst=500")
_POD = {"restartPolicy": "Never", "containers": [{"name": "pytorch", "image": "registry.invalid/probe"}]}
_JOB = {"name": "probe", "template": {"spec": {"template": {"spec": _POD}}}}
_REPLICAS = {"Worker": {"template": {"spec": _POD}}}
# controller-runtime's default below TMPDIR, where a program without a setting for it looks for its certificate
_CERTIFICATES = "k8s-webhook-server/serving-certs"


@dataclass(frozen=True)
class Operator:
    """A controller of runs."""

    name: str
    # Its arguments, with {kubeconfig}, {config}, {folder}, {webhook} and {health} for files and ports, and {paths} of
    # its webhooks
    arguments: tuple[str, ...]
    namespace: str = "default"  # the namespace that it expects
    variables: tuple[str, ...] = ()  # its environment, with {kubeconfig}, {folder} and {health}
    # A kind and an object of it that webhooks accept once it is ready; None without webhooks
    probe: tuple[Kind, Object] | None = None
    certificates: str = "."  # the folder of its certificate, below its own
    # The Secret that its certificate rotator fills, which is not used here; the rotator cannot be disabled
    secret: str = ""
    # Returns its configuration for the ports and its folder; None without a file
    settings: Callable[[Sequence[int], Path], Any] | None = None
    health: str = "readyz"  # the path by which it reports that it handles jobs; empty without one
    change: Callable[[Object], None] = lambda _: None  # changes each of its webhook configurations
    renames: bool = True  # whether these get other names; not those that it reads itself

    def start(self, plane: ControlPlane) -> None:
        """Start it and wait until it handles jobs, and its webhooks answer."""
        folder = plane.folder / self.name
        client = webhooks.serve_by_url(plane, folder / self.certificates)
        place = {"namespace": self.namespace, "name": self.secret}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": place}
        plane.cluster.apply([namespace_object(self.namespace), *([secret] if self.secret else [])])

        def command(ports: Sequence[int]) -> list[str | Path]:
            found = webhooks.webhooks_of(self.name, f"{self.name}-" if self.renames else "")
            paths = [hook["clientConfig"]["service"]["path"] for each in found for hook in each["webhooks"]]
            webhooks.redirect(found, client(ports[0]))
            for configuration in found:
                self.change(configuration)
            plane.cluster.apply(found)
            config = plane.folder / f"{self.name}.json"
            if self.settings:
                config.write_text(json.dumps(self.settings(ports, folder)), "utf-8")
            words = {"config": config, "folder": folder, "webhook": ports[0], "health": ports[1]}
            words |= {"kubeconfig": plane.kubeconfig, "paths": ",".join(paths)}
            variables, arguments = (
                [each.format(**words) for each in part] for part in (self.variables, self.arguments)
            )
            return ["env", *variables, engines.require(self.name), *arguments]

        def ready(ports: Sequence[int]) -> bool:
            is_ready = not self.health or answers(f"http://127.0.0.1:{ports[1]}/{self.health}")
            return is_ready and (self.probe is None or webhooks.accepts(plane, *self.probe))

        plane.processes.start(self.name, command, ports=2, ready=ready)


def _jobset_settings(ports: Sequence[int], folder: Path) -> dict[str, Any]:
    return {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "webhook": {"host": "127.0.0.1", "port": ports[0], "certDir": str(folder)},
    }


def _only_its_pods(configuration: Object) -> None:
    """Leave other pods out, as its installer does, so that a stuck JobSet controller cannot block them."""
    for webhook in configuration["webhooks"]:
        if any("pods" in rule["resources"] for rule in webhook["rules"]):
            exists = {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}
            webhook["objectSelector"] = {"matchExpressions": [exists]}


def _trainer_settings(ports: Sequence[int], _: Path) -> dict[str, Any]:
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


def _only_pytorch_jobs(configuration: Object) -> None:
    kept = [
        webhook
        for webhook in configuration["webhooks"]
        if any(PYTORCHJOB.plural in rule["resources"] for rule in webhook["rules"])
    ]
    configuration["webhooks"] = kept


def _volcano_settings(_ports: Sequence[int], _folder: Path) -> Any:
    key = "volcano-scheduler.conf"
    installed = engines.engine_objects("volcano-webhook-manager", "install.json")
    (text,) = (item["data"][key] for item in installed if item["kind"] == "ConfigMap" and key in item["data"])
    return load(text, key).data


_HEALTH = "--health-probe-bind-address=127.0.0.1:{health}"
OPERATORS = (
    Operator(
        "jobset",
        ("--kubeconfig={kubeconfig}", "--config={config}", "--metrics-bind-address=0", _HEALTH),
        "jobset-system",
        probe=(JOBSET, {"metadata": {"name": "probe", "namespace": "default"}, "spec": {"replicatedJobs": [_JOB]}}),
        settings=_jobset_settings,
        change=_only_its_pods,
    ),
    Operator(
        "training-operator",
        (
            *("--kubeconfig={kubeconfig}", "--enable-scheme=pytorchjob", "--webhook-server-port={webhook}"),
            *(_HEALTH, "--metrics-bind-address=0", *_API),
        ),
        "kubeflow",
        ("TMPDIR={folder}",),
        probe=(PYTORCHJOB, {"metadata": {"name": "probe"}, "spec": {"pytorchReplicaSpecs": _REPLICAS}}),
        certificates=_CERTIFICATES,
        secret="training-operator-webhook-cert",  # noqa: S106 - its name
        change=_only_pytorch_jobs,
    ),
    Operator(
        "mpi-operator",
        (
            *("--kubeConfig={kubeconfig}", *_API),
            *("--controller-queue-rate-limit=300", "--controller-queue-burst=500"),
        ),
        "mpi-operator",  # of its lease
        ("HEALTH_PORT={health}",),  # see data/engines.yaml
        health="healthz",
    ),
    Operator(
        "trainer",
        ("--config={config}",),
        "kubeflow-system",
        ("TMPDIR={folder}", "KUBECONFIG={kubeconfig}"),
        probe=(TRAINING_RUNTIME, {"metadata": {"name": "probe"}, "spec": {"mlPolicy": {"numNodes": 1}}}),
        certificates=_CERTIFICATES,
        settings=_trainer_settings,
    ),
    Operator(
        "kuberay",
        ("--enable-leader-election=false", "--metrics-addr=0", _HEALTH, "--qps=300", "--burst=500"),
        variables=("KUBECONFIG={kubeconfig}",),
    ),
)
_VOLCANO = ("--kubeconfig={kubeconfig}", "--kube-api-qps=2000", "--kube-api-burst=2000")
_VOLCANO_HEALTH = ("--leader-elect=false", "--enable-healthz", "--healthz-address=127.0.0.1:{health}")
_TASK = {"name": "probe", "replicas": 1, "template": {"spec": _POD}}
_VOLCANO_PARTS = (
    Operator(
        "volcano-webhook-manager",
        (
            *(*_VOLCANO, "--enabled-admission={paths}", "--listen-address=127.0.0.1", "--port={webhook}"),
            "--webhook-url=https://127.0.0.1:{webhook}",  # required but unused: see the applied configuration
            *("--tls-cert-file={folder}/tls.crt", "--tls-private-key-file={folder}/tls.key"),
            "--ca-cert-file={folder}/tls.crt",
        ),
        "volcano-system",
        probe=(VOLCANO_QUEUE, {"metadata": {"name": "probe"}, "spec": {}}),
        health="",
        renames=False,
    ),
    Operator("volcano-controller-manager", (*_VOLCANO, *_VOLCANO_HEALTH), "volcano-system", health="healthz"),
    Operator(
        "volcano-scheduler",
        # every 200 ms instead of 1 s: a throw-away cluster should be fast
        (*_VOLCANO, *_VOLCANO_HEALTH, "--scheduler-conf={config}", "--schedule-period=200ms", "--cache-dumper=false"),
        "volcano-system",
        # refused until the default queue is open
        probe=(VOLCANO_JOB, {"metadata": {"name": "probe"}, "spec": {"minAvailable": 1, "tasks": [_TASK]}}),
        settings=_volcano_settings,
        health="healthz",
    ),
)


def start_volcano(plane: ControlPlane) -> None:
    """Start Volcano beside kube-scheduler: its admission, its controllers and its scheduler."""
    for each in _VOLCANO_PARTS:
        each.start(plane)
