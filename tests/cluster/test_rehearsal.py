"""Rehearsals as a library call and as the command of the README, on control planes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import process_helpers
import pytest
import userlib
from answers import answer
from process_helpers import running
from rendered import GPT3, target
from userlib import chartgen

from chartgen.composer.assembly import compose
from chartgen.composer.library import open_library
from chartgen.composer.target import load_target
from chartgen.errors import ChartgenError
from chartgen.helm.values import Values, load_values
from chartgen.kube import CRD, Kind
from chartgen.rehearsal import rehearse as rehearsing
from chartgen.rehearsal.foreign import (
    foreign_claims,
    foreign_classes,
    foreign_drivers,
    foreign_inputs,
    foreign_kinds,
    foreign_priorities,
    foreign_runtimes,
)
from chartgen.rehearsal.rehearse import Rehearsal, assumptions, rehearse
from chartgen.rehearsal.verdict import Verdict
from chartgen.releases.plan import Plan, plan_release

pytestmark = pytest.mark.engines


def gpt3(*sets: str) -> Values:
    return load_values(GPT3, set_values=sets)


def test_256_gpus_run_on_32_machines() -> None:
    plans: list[Plan] = []
    result = rehearse(target(), gpt3(), on_plan=plans.append)
    verdict = result.verdict
    assert verdict.ok, verdict.reasons
    assert (verdict.running, verdict.machines, verdict.gpus) == (32, 32, 256)
    assert verdict.rendezvous == result.plan.rendezvous
    assert plans == [result.plan]
    assert (result.plan.gpus, result.plan.parallelism["data"], result.plan.batch["microBatches"]) == (256, 8, 256)


def test_with_31_machines_it_stays_queued_and_says_why() -> None:
    verdict = rehearse(target(), gpt3(), machines=31).verdict
    assert not verdict.ok
    assert not verdict.admitted
    assert "room for 31 of its 32 pods" in " ".join(verdict.reasons)


def test_a_resource_that_values_name_is_in_the_queue_and_on_the_machines() -> None:
    sets = ("nodes=2", "queue.name=lab", "network.interface=infiniband", "network.resource=rdma/hca_shared_devices_a")
    told: list[str] = []
    values = load_values((), set_values=(*sets, "network.resourceCount=1"))
    verdict = rehearse(target("onprem-p8000"), values, progress=told.append).verdict
    assert verdict.ok, verdict.reasons
    assert any("1 rdma/hca_shared_devices_a" in line for line in told)


def test_a_device_class_that_chartgen_does_not_know_is_counted() -> None:
    """A stranger's adapters, claimed on machines of a queue."""
    sets = ("nodes=2", "queue.name=lab", "network.mode=claims", "network.deviceClass=rail.example.com")
    values = load_values((), set_values=sets, set_json=('setup.quota.resources={"rail.example.com": "8"}',))
    verdict = rehearse(target("gke-a3ultra"), values).verdict
    assert verdict.ok, verdict.reasons


def test_what_is_taken_for_granted_of_the_cluster_is_told() -> None:
    def told(name: str, *sets: str) -> list[str]:
        values = load_values((), set_values=("nodes=2", *sets))
        return list(assumptions(target(name), plan_release(compose(target(name)), values, "rehearsal", "default")))

    (line,) = told("eks-p5", "queue.name=lab")
    assert "kubeflow.org/pytorchjob" in line
    assert told("eks-p5") == told("gke-a3mega", "queue.name=lab") == []


def test_job_kind_without_a_queue_needs_no_controller() -> None:
    result = rehearse(target(), gpt3("nodes=4", "model.layers=48", "queue.name=", "topology.mode="), workload="job")
    assert result.verdict.ok, result.verdict.reasons
    assert result.plan.apis == {"v1", "batch/v1", "networking.k8s.io/v1"}


def test_a_program_for_data_runs_beside_the_machines_with_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only GPU machine has a taint, and the program asks for none."""
    taints = "    taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]\n"
    text = userlib.TARGET.replace("[nemo-1]", "[nemo-1, download]").replace("fragments:", f"{taints}fragments:")
    monkeypatch.setattr(userlib, "TARGET", text)
    box = load_target("box", open_library([userlib.library(tmp_path, {})]))
    lines: list[str] = []
    values = load_values(set_values=["launcher=download", "data.source=https://example.com/a.txt"])
    result = rehearse(box, values, progress=lines.append)
    assert result.verdict.ok, result.verdict.reasons
    assert (result.verdict.running, result.verdict.gpus, result.plan.gpus, result.plan.program) == (1, 0, 0, "download")
    assert "creating 1 simulated machines" in lines


def test_a_team_whose_namespace_has_a_setup_of_its_own_is_admitted_there() -> None:
    """The first setup makes the queue of the cluster; that of the team, without the cluster's half, its local queue."""
    own = {"speech": load_values(set_values=["setup.cluster=false"])}
    result = rehearse(target(), gpt3("nodes=4", "model.layers=48", "queue.name=speech"), namespace="speech", teams=own)
    assert result.verdict.ok, result.verdict.reasons


def test_a_cloud_of_ones_own_is_rehearsed(tmp_path: Path) -> None:
    """A machine type with capitals and underscores, claims on a class of the cluster and its default, a claim of it."""
    target = userlib.TARGET.replace("box-8", "Standard_ND96isr_H100_v5").replace("workload: jobset", "workload: job")
    names = "instance-type, storage-pvc, claims"
    userlib.write(tmp_path, {"targets/azure.yaml": target.replace("FRAGMENTS", names)})
    sets = [
        "setup.claims.data.storageClass=azurefile-premium",
        "setup.claims.results.size=2Ti",
        "storage.data.from=pvc://data",
        "storage.outputs.from=pvc://results",
        "storage.scratch.from=pvc://fast",
    ]
    lines: list[str] = []
    azure = load_target("azure", open_library([tmp_path]))
    result = rehearse(azure, load_values(set_values=sets), progress=lines.append)
    assert result.verdict.ok, result.verdict.reasons
    assert result.simulated == ("claim fast", "storage class azurefile-premium", "storage class default")
    assert "simulating claim fast, storage class azurefile-premium, storage class default" in lines


# Kinds of a cloud: one whose CRD chartgen has, one that it does not know, and a group that Kubernetes reserves.
OTHER_KINDS = """\
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: rail-0}
spec: {config: '{"type": "ib-sriov"}'}
---
apiVersion: fabric.example.com/v1alpha1
kind: Rail
metadata: {name: rail-0, namespace: {{ .Release.Namespace }}}
spec: {anything: [1]}
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: daily}
driver: example.com
"""


def test_what_pods_name_and_a_cloud_has_is_simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A priority class, a secret, and custom resources of the setup chart, on a queue of Kueue."""
    reference = "{valueFrom: {secretKeyRef: {name: hub, key: token}}, name: HUB}"
    files = {
        "mine/setup/others.yaml": OTHER_KINDS,
        "mine/podSpec.yaml": "priorityClassName: train\n",
        "mine/env.yaml": f"- {reference}\n",
    }
    monkeypatch.setattr(userlib, "TARGET", userlib.TARGET.replace("FRAGMENTS", "FRAGMENTS, instance-type, kueue"))
    box = load_target("box", open_library([userlib.library(tmp_path, files)]))
    sets = ["queue.name=q"]
    result = rehearse(box, load_values(set_values=sets))
    assert result.verdict.ok, result.verdict.reasons
    assert result.simulated == (
        "priority class train",
        "Secret hub",
        "Rail of fabric.example.com",
        "NetworkAttachmentDefinition of k8s.cni.cncf.io",
        "VolumeSnapshotClass of snapshot.storage.k8s.io",
    )


@pytest.mark.parametrize(
    ("spec", "classes"),
    [
        ({"storageClassName": "premium"}, {"premium": "false"}),
        ({"storageClassName": "own"}, {}),
        ({"storageClassName": ""}, {}),
        ({"storageClassName": "premium", "volumeName": "there"}, {}),
        ({}, {"default": "true"}),
    ],
)
def test_what_is_simulated_is_what_the_charts_do_not_make(spec: dict[str, str], classes: dict[str, str]) -> None:
    claim = {"spec": {**spec, "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Ti"}}}}
    own = {"kind": "StorageClass", "metadata": {"name": "own"}}
    inside = {"kind": "Pod", "spec": {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": claim}}]}}
    for item in ({"kind": "PersistentVolumeClaim", **claim}, inside):
        found = foreign_classes([own, item])
        marks = {name: each["metadata"]["annotations"].popitem()[1] for name, each in found.items()}
        assert marks == classes


def test_claims_that_the_charts_do_not_make_are_simulated() -> None:
    own = {"kind": "PersistentVolumeClaim", "metadata": {"name": "own"}}
    volumes = [{"persistentVolumeClaim": {"claimName": name}} for name in ("own", "theirs", "theirs")]
    found = foreign_claims([own, {"kind": "JobSet", "spec": {"template": {"volumes": volumes}}}], "runs")
    assert [*found] == ["theirs"]
    assert [each["metadata"].get("namespace") for each in found["theirs"]] == [None, "runs"]


def test_runtime_classes_that_the_charts_do_not_make_are_simulated() -> None:
    own = {"kind": "RuntimeClass", "metadata": {"name": "own"}}
    pods = [{"kind": "Pod", "spec": {"containers": [], "runtimeClassName": name}} for name in ("nvidia", "own")]
    assert list(foreign_runtimes([own, {"kind": "JobSet", "spec": {"templates": pods}}])) == ["nvidia"]


def test_priority_classes_that_the_charts_do_not_make_are_simulated() -> None:
    own = {"kind": "PriorityClass", "metadata": {"name": "own"}}
    names = ("theirs", "own", "system-node-critical", "")
    pods = [{"kind": "Pod", "spec": {"containers": [], "priorityClassName": name}} for name in names]
    found = foreign_priorities([own, {"kind": "JobSet", "spec": {"templates": pods}}])
    assert {name: each["value"] for name, each in found.items()} == {"theirs": 0}


@pytest.mark.parametrize("needed", [True, False])
def test_inputs_of_pods_that_the_charts_do_not_make_are_listed(needed: bool) -> None:
    optional = {} if needed else {"optional": True}
    own = [{"kind": kind, "metadata": {"name": "own"}} for kind in ("ConfigMap", "Secret")]

    def refer(key: str, name: str, *, at: str = "name") -> dict[str, object]:
        return {key: {at: name, **optional}}

    container = {
        "env": [
            {"name": "A", "valueFrom": refer("secretKeyRef", "env")},
            {"name": "B", "valueFrom": refer("configMapKeyRef", "env")},
        ],
        "envFrom": [refer("secretRef", "whole"), refer("configMapRef", "whole"), refer("configMapRef", "own")],
    }
    volumes = [
        refer("secret", "files", at="secretName"),
        refer("configMap", "files"),
        refer("secret", "own", at="secretName"),
        refer("configMap", "kube-root-ca.crt"),
        {"projected": {"sources": [refer("secret", "part"), refer("configMap", "part")]}},
        {"csi": {"driver": "fs", **refer("nodePublishSecretRef", "driver")}},
    ]
    pod = {"kind": "Pod", "metadata": {"name": "pod"}, "spec": {"containers": [container], "volumes": volumes}}
    store = {"kind": "Store", "metadata": {"name": "s"}, "spec": {"secretRef": {"name": "no-pod-reads-it"}}}
    maps = [f"ConfigMap {name}" for name in ("env", "files", "part", "whole")]
    secrets = [f"Secret {name}" for name in ("driver", "env", "files", "part", "whole")]
    assert foreign_inputs([*own, store, pod]) == ([*maps, *secrets] if needed else [])


def test_kinds_that_nothing_serves_are_simulated() -> None:
    def item(api_version: str, kind: str) -> dict[str, object]:
        return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}

    def crd(kind: str) -> dict[str, object]:
        return {**item(CRD.api_version, CRD.name), "spec": {"group": "a.example", "names": {"kind": kind}}}

    served = [item("v1", "Pod"), item("apps/v1beta1", "Deployment"), item("flat/v1", "Thing")]
    known = [item("a.example/v1", kind) for kind in ("Own", "Controlled", "Served")]
    theirs = [
        item("a.example/v2", "Theirs"),
        item("a.example/v1", "Theirs"),
        item("snapshot.storage.k8s.io/v1", "Snap"),
    ]
    found = foreign_kinds(
        [crd("Own"), *served, *known, *theirs], [crd("Controlled")], [Kind("a.example/v2", "Served", "s")]
    )
    versions = {name: [each["name"] for each in made["spec"]["versions"]] for name, made in found.items()}
    assert versions == {"Theirs of a.example": ["v1", "v2"], "Snap of snapshot.storage.k8s.io": ["v1"]}


def test_drivers_that_the_charts_do_not_make_are_simulated() -> None:
    own = {"kind": "CSIDriver", "metadata": {"name": "own.csi"}}
    made = [
        {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": name}
        for name in ("class.csi", "own.csi", "kubernetes.io/no-provisioner")
    ]
    pod = {"kind": "Pod", "spec": {"volumes": [{"name": "v", "csi": {"driver": "inline.csi"}}]}}
    assert list(foreign_drivers([own, *made, pod])) == ["class.csi", "inline.csi"]


def test_values_are_refused_before_anything_starts() -> None:
    lines: list[str] = []
    with pytest.raises(ChartgenError, match="nodes: 248 GPUs"):
        rehearse(target(), gpt3("nodes=31"), progress=lines.append)
    assert not [line for line in lines if "starting" in line]


def command(*arguments: str) -> list[str]:
    files = [part for file in GPT3 for part in ("-f", str(file))]
    return [sys.executable, "-m", "chartgen", *arguments, *files]


@pytest.mark.parametrize(("overloaded", "code"), [(False, 1), (True, 3)])
def test_a_simulation_that_was_too_slow_is_no_verdict(
    overloaded: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what the command says of a verdict: how the simulation gets so slow is in test_judging.py."""
    plan = plan_release(compose(target()), gpt3(), "rehearsal", "default")
    verdict = Verdict(True, 32, 32, 3, 3, 24, "", ["too slow"], 1.0, ok=False, overloaded=overloaded)
    monkeypatch.setattr(rehearsing, "rehearse", lambda *_, **__: Rehearsal(plan, 32, verdict))
    found = chartgen(
        "rehearse", "gke-a3mega", "--preset", "gpt3-175b", "--preset", "nccl-test", "--set", "nodes=2,topology.mode="
    )
    assert found.exit_code == code
    assert "steps, set for training" in found.stderr
    assert ("overloaded" in found.stdout) is overloaded
    assert ("does not run" in found.stdout) is not overloaded
    found = chartgen("rehearse", "gke-a3mega", "--output", "json")
    assert (found.exit_code, answer(found.stdout)["verdict"]["overloaded"]) == (code, overloaded)


def test_command_prints_the_verdict_as_json_and_fails_when_it_does_not_run() -> None:
    argv = command("rehearse", "gke-a3mega", "--machines", "3", "--set", "nodes=4,model.layers=48", "--output", "json")
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    found = answer(done.stdout)
    assert (found["machines"], found["verdict"]["ok"], found["plan"]["gpus"]) == (3, False, 32)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux can tie a child to its parent's life")
@pytest.mark.parametrize("victim", ["supervisor.py", "kube-apiserver"])
@pytest.mark.parametrize("moment", ["starting kube-controller-manager", "installing release"])
def test_a_control_plane_that_is_killed_is_one_line(tmp_path: Path, victim: str, moment: str) -> None:
    """Neither a verdict nor silence."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    sets = "nodes=4,model.layers=48,queue.name=,topology.mode="
    argv = command("rehearse", "gke-a3mega", "--workload", "job", "--set", sets)
    with running(argv, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            if moment in line:
                break
        lines = process_helpers.command_lines().items()
        pid = next(pid for pid, line in lines if victim in " ".join(line[:4]) and str(tmp_path) in " ".join(line))
        os.kill(pid, signal.SIGKILL)
        stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stdout) == (3, ""), stderr
    (error,) = (line for line in stderr.splitlines() if line.startswith("error: "))
    assert "was killed by signal 9" in error


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_rehearsal_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    argv = command("rehearse", "gke-a3mega")
    with running(argv, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            if "installing release" in line:
                break
        process.send_signal(number)
        process.communicate(timeout=180)
    assert process.returncode != 0
    deadline = time.monotonic() + 180
    while left := [*process_helpers.mentioning(str(tmp_path)), *map(str, tmp_path.glob("chartgen-plane-*"))]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
