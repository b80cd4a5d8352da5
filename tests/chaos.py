"""Chaos: random operations on ten releases, many of them killed on their way; then all must be whole.

    make chaos                          200 operations
    python tests/chaos.py 50 --seed 7   fewer of them, as of seed 7

Each release has a claim that is to be kept. While it goes on, every release is watched for two runs whose pods have
machines at the same time. At the end each release gets one more command, and then there must be exactly its run, its
claim, its records, and nothing else.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import manifests
from killed import run_killed
from releases import run_chart

from chartgen.cluster import CLAIM, CONFIG_MAP, JOB, JOBSET, LEASE, POD, Cluster, connect, wait_for
from chartgen.records import read_records
from chartgen.rehearsal.build import build
from chartgen.rehearsal.controllers import start_controllers
from chartgen.rehearsal.controlplane import CONTEXT, ControlPlane
from chartgen.rehearsal.engines import needed
from chartgen.rehearsal.machines import create_machines
from chartgen.rollout.lease import lease_name

RELEASES = 10
NAMESPACE = "chaos"
LONG_AGO = "2026-01-01T00:00:00.000000Z"
KILLED = 0.5  # share of the operations that are to be killed; some end before they come to their place
CHANGES = 9  # an upgrade makes about so many changes of the cluster
WORKERS = 2


@dataclass
class Chaos:
    """The releases, and what was done to them."""

    cluster: Cluster
    kubeconfig: Path
    charts: dict[str, Path]
    rng: random.Random
    steps: dict[str, int] = field(default_factory=dict)
    claims: set[str] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def operate(self, release: str, seed: int) -> None:
        """Do one random thing to a release, and kill it or not."""
        rng = random.Random(seed)
        statuses = [record.status for record in read_records(self.cluster, release, NAMESPACE)]
        action = "install"
        if "deployed" in statuses:
            returns = 2 if "superseded" in statuses else 0
            action = rng.choices(["upgrade", "rollback", "uninstall"], [5, returns, 1])[0]
        if rng.random() < 0.7:
            self.steps[release] = rng.randrange(10**6)
        change = rng.randrange(CHANGES) if rng.random() < KILLED else 10**6
        died = self._act(release, action, change, rng.choice([0.0, 0.2, 0.4]))
        self.done[f"{action}{' killed' if died else ''}"] += 1

    def settle(self, release: str) -> None:
        """Bring a release to a good state by one command that nobody kills."""
        statuses = [record.status for record in read_records(self.cluster, release, NAMESPACE)]
        self._act(release, "upgrade" if "deployed" in statuses else "install", 10**6, 0.0)

    def _act(self, release: str, action: str, change: int, delay: float) -> bool:
        values = {"run": {"steps": self.steps.setdefault(release, 0)}}
        run = functools.partial(run_killed, change=change, delay=delay, release=release)
        try:
            died = run(action, self.charts[release], values, NAMESPACE, self.kubeconfig)
        except AssertionError as error:
            self.faults.append(f"{action} of {release}: {str(error).strip().splitlines()[-1]}")
            return False
        if died and self.cluster.get(LEASE, lease_name(release), NAMESPACE):
            # as if some minutes had passed, in which nobody looked
            change_ = {"spec": {"renewTime": LONG_AGO}}
            self.cluster.patch(LEASE, lease_name(release), change_, namespace=NAMESPACE)
        self.claims |= {item["metadata"]["name"] for item in self.cluster.list(CLAIM, namespace=NAMESPACE)}
        return died


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
        if [pod["status"]["phase"] for pod in pods] != ["Running"]:
            wrong.append(f"{release}: {run} has {len(pods)} pods")
    found = {(kind.name, name) for kind in (JOBSET, CONFIG_MAP) for name in _names(chaos.cluster, kind)}
    wrong += [
        f"orphan {kind} {name}" for kind, name in sorted(found) if name not in held and name != "kube-root-ca.crt"
    ]
    jobs = [name for name in _names(chaos.cluster, JOB) if not any(name.startswith(run) for run in held)]
    return wrong + [f"orphan Job {name}" for name in jobs]


def _names(cluster: Cluster, kind: Any) -> set[str]:
    return {item["metadata"]["name"] for item in cluster.list(kind, namespace=NAMESPACE)}


def _charts(folder: Path) -> dict[str, Path]:
    """Write a chart for each release: a JobSet of one machine, and a claim that is kept."""
    charts = {}
    for number in range(RELEASES):
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
        chart = run_chart(manifests.jobset("x", 1, pool="chaos"), extra=claim, release=release)
        chart.write(folder / release)
        charts[release] = folder / release
    return charts


def main() -> int:
    """Run it; print what was done and what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("operations", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    build(["helm", *needed(["jobset"])])
    print(f"chaos of seed {options.seed}: {options.operations} operations on {RELEASES} releases", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as plane:
        start_controllers(plane, ["jobset"])
        create_machines(plane.cluster, [manifests.pool("chaos", RELEASES * 2)])
        plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
        chaos = Chaos(plane.cluster, plane.kubeconfig, _charts(Path(folder)), random.Random(options.seed))
        ended = threading.Event()
        watcher = threading.Thread(target=watch, args=(plane.kubeconfig, ended, chaos.faults))
        watcher.start()
        with ThreadPoolExecutor(WORKERS) as pool:
            # a release is one worker's, so that an operation follows another one and not a living one
            list(pool.map(lambda each: _work(chaos, each, options.operations), range(WORKERS)))
            list(pool.map(chaos.settle, chaos.charts))
        ended.set()
        watcher.join()
        running = [f"run-{number}" for number in range(RELEASES)]
        wait_for(lambda: len(_running(chaos.cluster)) >= len(running), what="that all releases run", timeout=60)
        time.sleep(2)
        wrong = [*chaos.faults, *verify(chaos)]
    for what, count in sorted(chaos.done.items()):
        print(f"{count:5} {what}")
    for line in wrong:
        print(f"WRONG {line}")
    killed = sum(count for what, count in chaos.done.items() if what.endswith("killed"))
    seconds = time.monotonic() - started
    print(
        f"{sum(chaos.done.values())} operations, {killed} killed, in {seconds:.0f} s: {len(wrong) or 'nothing'} wrong"
    )
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
