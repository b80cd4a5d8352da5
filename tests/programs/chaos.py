"""Chaos: random operations on releases, most of them disturbed on their way; then all must be whole.

    make chaos                              500 operations on ten releases of one machine each
    make chaos CHAOS="50 --seed 7"          fewer of them, as of seed 7
    make chaos CHAOS="200 --releases 50 --machines 10"    a cluster of 500 machines

Operations are killed, cut off from the API server, put to sleep while another command takes their release over; the
answers of their Lease are lost, or it is renewed all the time (tests/support/kill_at.py). Sidecars are injected as the
first container of pods, and are not, as a webhook of GCS FUSE does. Each release has a claim that is to be kept. While
it goes on, every release is watched for two runs whose pods have machines at the same time. At the end each release
gets one more command, and then there must be exactly its run, its claim, its records, and nothing else.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kill_at
import manifests
from kill_at import order_of, run
from releases import run_chart

from chartgen.kube import CLAIM, CONFIG_MAP, JOB, JOBSET, LEASE, POD, Cluster, connect, wait_for
from chartgen.rehearsal.controllers import start_controllers
from chartgen.rehearsal.controlplane import CONTEXT, ControlPlane
from chartgen.rehearsal.engine_build import build_engines
from chartgen.rehearsal.engines import needed_engines
from chartgen.rehearsal.simulated_nodes import create_machines
from chartgen.releases.history import read_records
from chartgen.releases.lock import lease_name
from chartgen.releases.status.readout import read_readout

NAMESPACE = "chaos"
# What happens to an operation, and how often; some end before they come to their place.
FAULTS = {"": 30, "kill": 30, "cut": 12, "block": 4, "sleep": 12, "unheard": 6, "busy": 6}
CHANGES = 9  # an upgrade makes about so many changes of the cluster
WRITES = 5  # of which so many are of its Lease
SIDECAR = 0.1  # share of the operations before which sidecars begin or cease to be injected
WORKERS = 2
_TOLD = "ChartgenError", "MissingToolError", "ClusterError", "HelmError"  # errors that a command may end with
_POLICY = "admissionregistration.k8s.io/v1"


@dataclass
class Chaos:
    """The releases, and what was done to them."""

    cluster: Cluster
    kubeconfig: Path
    charts: dict[str, Path]
    rng: random.Random
    machines: int = 1
    steps: dict[str, int] = field(default_factory=dict)
    claims: set[str] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    sidecars: int = 0

    def operate(self, release: str, seed: int) -> None:
        """Do one random thing to a release, and disturb it or not."""
        rng = random.Random(seed)
        if rng.random() < SIDECAR:
            inject(self.cluster, on=rng.random() < 0.5)
        action = self._action(release, rng)
        if rng.random() < 0.7:
            self.steps[release] = rng.randrange(10**6)
        (kind,) = rng.choices(list(FAULTS), list(FAULTS.values()))
        fault: dict[str, Any] = {"kind": kind} if kind else {}
        if kind not in ("", "unheard", "busy"):
            fault |= {"change": rng.randrange(WRITES if kind == "sleep" else CHANGES)}
            fault |= {"delay": rng.choice([0.0, 0.2, 0.4])}
        disturbed = self._sleep(release, action, fault) if kind == "sleep" else self._act(release, action, fault)
        self.done[f"{action}{f' {kind}' if disturbed or kind in ('unheard', 'busy') else ''}"] += 1

    def settle(self, release: str) -> None:
        """Bring a release to a good state by one command that nobody disturbs."""
        self._act(release, self._again(release), {})

    def _action(self, release: str, rng: random.Random) -> str:
        if (again := self._again(release)) == "install":
            return again
        returns = 2 if "superseded" in self._statuses(release) else 0
        return rng.choices(["upgrade", "rollback", "uninstall"], [5, returns, 1])[0]

    def _again(self, release: str) -> str:
        """Name the command that a user would give, who reads `helm history`.

        Helm marks the old revision as superseded before it marks the new one as deployed: killed in between, it leaves
        a release that is there and has nothing deployed.
        """
        statuses = self._statuses(release)
        held = {"deployed", "superseded"} & set(statuses) and statuses[-1] != "uninstalling"
        return "upgrade" if held else "install"

    def _statuses(self, release: str) -> list[str]:
        return [record.status for record in read_records(self.cluster, release, NAMESPACE)]

    def _order(self, release: str, action: str, fault: dict[str, Any]) -> str:
        values = {"run": {"steps": self.steps.setdefault(release, 0)}}
        return order_of(action, self.charts[release], values, NAMESPACE, self.kubeconfig, release=release, **fault)

    def _act(self, release: str, action: str, fault: dict[str, Any]) -> bool:
        """Run a command; tell whether it came to the place where it is disturbed."""
        done = run(self._order(release, action, fault))
        self._judge(f"{action} of {release}", done.returncode, done.stderr, fault.get("kind", ""))
        self._look(release, died=done.returncode != 0)
        return done.returncode != 0

    def _sleep(self, release: str, action: str, fault: dict[str, Any]) -> bool:
        """Let a command sleep at a write of its Lease, and another one take over; then the first one wakes up."""
        first = subprocess.Popen(
            [sys.executable, Path(kill_at.__file__)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert first.stdin
        assert first.stderr
        first.stdin.write(self._order(release, action, fault))
        first.stdin.close()
        # without taking its end away from `wait`
        state = os.waitid(os.P_PID, first.pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
        if state is None or state.si_code != os.CLD_STOPPED:
            said = first.stderr.read()
            self._judge(f"{action} of {release}", first.wait(), said, "")
            self._look(release, died=False)
            return False
        self._look(release, died=True)
        second = run(self._order(release, self._again(release), {}))
        self._judge(f"takeover of {release}", second.returncode, second.stderr, "")
        before = self._records(release)
        os.kill(first.pid, signal.SIGCONT)
        said = first.stderr.read()
        self._judge(f"{action} of {release} that slept", first.wait(), said, "sleep")
        if self._records(release) != before:
            self.faults.append(f"{action} of {release} that slept has gone on beside the one that took over")
        self._look(release, died=False)
        return True

    def _records(self, release: str) -> list[tuple[int, str]]:
        return [(record.revision, record.status) for record in read_records(self.cluster, release, NAMESPACE)]

    def _judge(self, what: str, code: int, said: str, kind: str) -> None:
        """Note an end that is none: nobody disturbed it, or it is no error that a command may end with."""
        if code == 0 or (kind == "kill" and code == -signal.SIGKILL):
            return
        last = (said.strip().splitlines() or [""])[-1]
        told = any(f"{name}: " in said for name in _TOLD)
        if not (kind in ("cut", "block", "sleep", "unheard") and told):
            self.faults.append(f"{what} ({kind or 'undisturbed'}, exit {code}): {last}")

    def _look(self, release: str, *, died: bool) -> None:
        if died and self.cluster.get(LEASE, lease_name(release), NAMESPACE):
            # the next command watches a dead holder for as long as its Lease says
            change = {"spec": {"leaseDurationSeconds": 1}}
            self.cluster.patch(LEASE, lease_name(release), change, namespace=NAMESPACE)
        self.claims |= {item["metadata"]["name"] for item in self.cluster.list(CLAIM, namespace=NAMESPACE)}
        self.sidecars += sum(
            pod["spec"]["containers"][0]["name"] == "sidecar" for pod in self.cluster.list(POD, namespace=NAMESPACE)
        )


def inject(cluster: Cluster, *, on: bool) -> None:
    """Let the API server inject a sidecar as the first container of every pod from now on, or let it be."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    container = 'Object.spec.containers{name: "sidecar", image: "example.com/sidecar"}'
    patch = f'[JSONPatch{{op: "add", path: "/spec/containers/0", value: {container}}}]'
    policy = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [rule]},
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
    match = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}}
    head = {"apiVersion": _POLICY, "metadata": {"name": "sidecar"}}
    binding = {
        **head,
        "kind": "MutatingAdmissionPolicyBinding",
        "spec": {"policyName": "sidecar", "matchResources": match},
    }
    if on:
        cluster.apply([{**head, "kind": "MutatingAdmissionPolicy", "spec": policy}, binding])
    else:
        cluster.delete_object(binding)


def watch(kubeconfig: Path, ended: threading.Event, faults: list[str]) -> None:
    """Look until the end whether two runs of one release hold machines at once."""
    with connect(kubeconfig=kubeconfig, context=CONTEXT) as cluster:
        while not ended.wait(0.2):
            runs: dict[str, set[str]] = {}
            for pod in cluster.list(POD, namespace=NAMESPACE):
                labels = pod["metadata"]["labels"]
                if pod["spec"].get("nodeName") and pod["status"].get("phase") == "Running":
                    runs.setdefault(labels["app.kubernetes.io/instance"], set()).add(labels["run"])
            faults += [f"two runs of {name} at once: {sorted(found)}" for name, found in runs.items() if len(found) > 1]


def verify(chaos: Chaos) -> list[str]:
    """Say what is not as it should be."""
    wrong = [f"claim {name} is lost" for name in sorted(chaos.claims - _names(chaos.cluster, CLAIM))]
    held: set[str] = set()
    for release in chaos.charts:
        records = read_records(chaos.cluster, release, NAMESPACE)
        last = records[-1] if records else None
        if last is None or last.status != "deployed":
            wrong.append(f"{release} is {last.status if last else 'absent'}")
            continue
        if last.values != {"run": {"steps": chaos.steps[release]}}:
            wrong.append(f"{release} runs {last.values}")
        (run,) = {name for name in _names(chaos.cluster, JOBSET) if name in last.manifest} or {"no run"}
        held.add(run)
        pods = [pod for pod in chaos.cluster.list(POD, namespace=NAMESPACE) if pod["metadata"]["labels"]["run"] == run]
        if [pod["status"]["phase"] for pod in pods] != ["Running"] * chaos.machines:
            wrong.append(f"{release}: {run} has {len(pods)} pods")
        readout = read_readout(chaos.cluster, release, NAMESPACE)
        if (readout.phase, readout.ready) != ("running", chaos.machines):
            wrong.append(f"{release} is {readout.phase}, {readout.ready} pods ready")
    found = {(kind.name, name) for kind in (JOBSET, CONFIG_MAP) for name in _names(chaos.cluster, kind)}
    wrong += [
        f"orphan {kind} {name}" for kind, name in sorted(found) if name not in held and name != "kube-root-ca.crt"
    ]
    jobs = [name for name in _names(chaos.cluster, JOB) if not any(name.startswith(run) for run in held)]
    return wrong + [f"orphan Job {name}" for name in jobs]


def _names(cluster: Cluster, kind: Any) -> set[str]:
    return {item["metadata"]["name"] for item in cluster.list(kind, namespace=NAMESPACE)}


def _charts(folder: Path, releases: int, machines: int) -> dict[str, Path]:
    """Write a chart for each release: a JobSet of some machines, and a claim that is kept."""
    charts = {}
    for number in range(releases):
        release = f"run-{number}"
        metadata = {
            "name": f"{release}-data",
            "annotations": {"helm.sh/resource-policy": "keep"},
            "labels": {"app.kubernetes.io/instance": release},
        }
        resources = {"requests": {"storage": "1Gi"}}
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": resources},
        }
        chart = run_chart(manifests.jobset("x", machines, pool="chaos"), extra=claim, release=release)
        chart.write(folder / release)
        charts[release] = folder / release
    return charts


def main() -> int:
    """Run it; print what was done and what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("operations", type=int, nargs="?", default=500)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--machines", type=int, default=1, help="of each release")
    options = parser.parse_args()
    build_engines(["helm", *needed_engines(["jobset"])])
    print(f"chaos of seed {options.seed}: {options.operations} operations on {options.releases} releases", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as plane:
        start_controllers(plane, ["jobset"])
        create_machines(plane.cluster, [manifests.pool("chaos", options.releases * options.machines * 2)])
        plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
        charts = _charts(Path(folder), options.releases, options.machines)
        chaos = Chaos(plane.cluster, plane.kubeconfig, charts, random.Random(options.seed), options.machines)
        ended = threading.Event()
        watcher = threading.Thread(target=watch, args=(plane.kubeconfig, ended, chaos.faults))
        watcher.start()
        with ThreadPoolExecutor(WORKERS) as pool:
            # a release is one worker's, so that an operation follows another one and not a living one
            list(pool.map(lambda each: _work(chaos, each, options.operations), range(WORKERS)))
            list(pool.map(chaos.settle, chaos.charts))
        ended.set()
        watcher.join()
        pods = options.releases * options.machines
        wait_for(lambda: len(_running(chaos.cluster)) >= pods, what="that all releases run", timeout=60 + pods / 5)
        time.sleep(2)
        wrong = [*chaos.faults, *verify(chaos)]
    for what, count in sorted(chaos.done.items()):
        print(f"{count:5} {what}")
    for line in wrong:
        print(f"WRONG {line}")
    disturbed = sum(count for what, count in chaos.done.items() if " " in what)
    figures = f"{sum(chaos.done.values())} operations, {disturbed} disturbed, {chaos.sidecars} pods with a sidecar"
    print(f"{figures}, in {time.monotonic() - started:.0f} s: {len(wrong) or 'nothing'} wrong")
    return 1 if wrong else 0


def _work(chaos: Chaos, worker: int, operations: int) -> None:
    own = list(chaos.charts)[worker::WORKERS]
    rng = random.Random(chaos.rng.random() + worker)
    for _ in range(operations // WORKERS):
        chaos.operate(rng.choice(own), rng.randrange(10**9))


def _running(cluster: Cluster) -> list[str]:
    found = cluster.list(POD, namespace=NAMESPACE)
    return [pod["metadata"]["name"] for pod in found if pod["status"].get("phase") == "Running"]


if __name__ == "__main__":
    sys.exit(main())
