"""Releases for tests: small charts whose run is called by its digest, installed by chartgen or by plain Helm."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import manifests
import pytest
from mini_charts import CHART_YAML

from chartgen.helm.chart import Chart
from chartgen.kube import CONFIG_MAP, JOB, JOBSET, POD, Cluster, Object, wait_for
from chartgen.rehearsal import engines
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.releases.helm_release import Place, Release
from chartgen.releases.history import RevisionRecord, read_records
from chartgen.releases.rollout import Rollout, execute, prepare, prepare_rollback
from chartgen.releases.state import survey_release
from chartgen.releases.uninstall import Removal, uninstall

RELEASE = "my-run"
_RUN = '{{ printf "%s-%s" .Release.Name (printf "%v" .Values.run | sha256sum | trunc 8) }}'


STAYS = {"nfs": {"server": "192.0.2.1", "path": "/"}}  # RFC 5737: no simulated machine mounts it


def run_chart(
    run: Object, *, extra: Object | None = None, release: str = RELEASE, outputs: Object | None = None
) -> Chart:
    """A chart that renders one run and a ConfigMap, named by the digest of its values `run`.

    Args:
        run: The run, of tests/support/manifests.py; its metadata.name is the chart's business.
        extra: Another object, rendered as it stands.
        release: The release's name.
        outputs: The volume that holds its checkpoints; one that outlives the pods when None.

    Returns:
        The chart; its value `note` is an annotation of the run that no digest counts.
    """
    run = copy.deepcopy(run)
    run["metadata"] |= {"name": "RUN", "annotations": {"note": "NOTE"}}
    del run["metadata"]["namespace"]
    run["metadata"]["labels"]["app.kubernetes.io/instance"] = release
    for template in _pod_templates(run):
        template["metadata"]["labels"] = {"app.kubernetes.io/instance": release, "run": "RUN"}
        program = template["spec"]["containers"][0]
        program["env"] = [{"name": "CHECKPOINT_DIRECTORY", "value": "/outputs/checkpoints"}]
        program["volumeMounts"] = [*program.get("volumeMounts", ()), {"name": "outputs", "mountPath": "/outputs"}]
        template["spec"]["volumes"] = [{"name": "outputs", **(outputs or STAYS)}]
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "RUN", "labels": {"app.kubernetes.io/instance": release}},
        "data": {"values": "{{ .Values.run | toJson | b64enc }}"},
    }
    files = {"Chart.yaml": CHART_YAML, "values.yaml": 'run: {}\nnote: ""\n'}
    for name, item in {"run": run, "config": config, "extra": extra}.items():
        if item:
            text = json.dumps(item, indent=1).replace("RUN", _RUN).replace("NOTE", "{{ .Values.note }}")
            files[f"templates/{name}.yaml"] = text
    return Chart("tiny", dict(sorted(files.items())))


def _pod_templates(item: Any) -> Iterator[Object]:
    """Find the pod templates of a run: what has containers in its spec."""
    if isinstance(item, dict):
        if "containers" in item.get("spec", {}):
            yield item
        for value in item.values():
            yield from _pod_templates(value)
    elif isinstance(item, list):
        for value in item:
            yield from _pod_templates(value)


@dataclass
class Site:
    """A namespace of a test with one Helm, and what a user does there."""

    cluster: Cluster
    place: Place
    helm: Path
    lines: list[str]

    @property
    def namespace(self) -> str:
        return self.place.namespace

    def roll(self, action: str, chart: Chart, values: dict[str, Any] | None = None, **options: Any) -> Release:
        """Install or upgrade as chartgen does."""
        return self.carry_out(prepare(self.cluster, self.place, chart, RELEASE, values or {}, action=action), **options)

    def rollback(self, revision: int | None = None, **options: Any) -> Release:
        return self.carry_out(prepare_rollback(self.cluster, self.place, RELEASE, revision, **options))

    def carry_out(self, rollout: Rollout, **options: Any) -> Release:
        self.lines += rollout.findings
        return execute(rollout, self.cluster, self.place, progress=self.lines.append, **options)

    def uninstall(self) -> Removal:
        return uninstall(self.cluster, self.place, RELEASE, progress=self.lines.append)

    def plain(self, *arguments: str, chart: Chart | None = None, values: dict[str, Any] | None = None) -> str:
        """Run Helm as people do who have never heard of chartgen; its error stream, empty when it succeeded."""
        command = [str(self.helm), *arguments]
        with tempfile.TemporaryDirectory() as folder:
            if chart:
                chart.write(Path(folder, "tiny"))
                command += [str(Path(folder, "tiny")), "--values", "-"]
            place = ["--namespace", self.namespace, "--kubeconfig", str(self.place.kubeconfig)]
            stdin = json.dumps(values or {})
            done = subprocess.run([*command, *place], input=stdin, capture_output=True, text=True, check=False)
        return done.stderr or f"exit code {done.returncode}" if done.returncode else ""

    def records(self) -> list[RevisionRecord]:
        return read_records(self.cluster, RELEASE, self.namespace)

    def statuses(self) -> list[str]:
        return [record.status for record in self.records()]

    def runs(self) -> list[str]:
        found = survey_release(self.cluster, RELEASE, self.namespace).runs
        return [item["metadata"]["name"] for item in found if "deletionTimestamp" not in item["metadata"]]

    def pods(self) -> list[Object]:
        found = self.cluster.list(POD, namespace=self.namespace)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def running(self, count: int = 2) -> list[str]:
        """Wait until so many pods run and give their uids."""

        def uids() -> list[str] | None:
            found = [pod for pod in self.pods() if pod.get("status", {}).get("phase") == "Running"]
            return [pod["metadata"]["uid"] for pod in found] if len(found) == count else None

        return wait_for(uids, what=f"that {count} pods run", timeout=180)

    def left(self) -> list[str]:
        """Return what is left in the namespace of all kinds that a release makes."""
        found = [
            f"{kind.name} {item['metadata']['name']}"
            for kind in (JOBSET, JOB, CONFIG_MAP, POD)
            for item in self.cluster.list(kind, namespace=self.namespace)
            if item["metadata"]["name"] != "kube-root-ca.crt"
        ]
        return found + [f"record {record.revision} {record.status}" for record in self.records()]


@contextmanager
def site(cluster: Cluster, kubeconfig: Path, helm: Path, namespace: str) -> Iterator[Site]:
    """Return a namespace of its own, and end it with all that is in it."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    cluster.apply([body])
    before = os.environ.get("CHARTGEN_HELM")
    os.environ["CHARTGEN_HELM"] = str(helm)
    try:
        yield Site(cluster, Place(namespace, kubeconfig), helm, [])
    finally:
        cluster.delete_object(body)
        if before is None:
            del os.environ["CHARTGEN_HELM"]
        else:
            os.environ["CHARTGEN_HELM"] = before


@contextmanager
def rolling(plane: ControlPlane) -> Iterator[ControlPlane]:
    """Return the machines on which the charts of `small` run, and remove them at the end."""
    names = create_machines(plane.cluster, [manifests.pool("roll", 4)])
    yield plane
    delete_machines(plane.cluster, names)


def site_of(request: pytest.FixtureRequest, plane: ControlPlane, prefix: str) -> AbstractContextManager[Site]:
    """Return a test its own namespace; the fixture's parameter, when it has one, names the Helm."""
    helm = getattr(request, "param", "helm")
    namespace = f"{prefix}-{helm}-{abs(hash(request.node.name)) % 10**8}"
    return site(plane.cluster, plane.kubeconfig, engines.require(helm), namespace)


def small(kind: str = "jobset", *, outputs: Object | None = None, **options: Any) -> Chart:
    """A chart of two pods of one kind on the machines of the pool `roll`."""
    run = getattr(manifests, kind)("x", 2, pool="roll", **options)
    return run_chart(run, outputs=outputs)
