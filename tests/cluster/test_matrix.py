"""Every preset on every target that offers its launcher: refused by nobody, and placed by the real controllers.

All runs of a target stand side by side on simulated machines of a real control plane, in a namespace of the target's
own, with the target's setup chart. The API server checks each object strictly, by the schemas of the CRDs in use too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pairs import PRESETS, TARGETS, WIRINGS, Run, chart_of, presets_of, runs_of
from rendered import VALUES
from selection import cases

from chartgen.checks import validate
from chartgen.composer.assembly import compose, compose_setup
from chartgen.composer.node_pools import node_pool
from chartgen.composer.target import Target, load_target
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import load_values
from chartgen.kube import NAMESPACE, Object, wait_for
from chartgen.kube.node_pool import NodePool
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.foreign import foreign_classes, foreign_runtimes
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.rehearsal.verdict import look

# Kinds besides a target's own, on a target of each kind and of each way to the adapters: they share the pod itself.
OTHER_KINDS = ("mpijob", "rayjob", "trainjob")
MORE_PODS = {"-mpijob": 1, "-rayjob": 2}
WITH_OTHER_KINDS = ("crusoe", "eks-p5", "gke-a3high", "gke-a4x", "onprem-p8000")
# One of each kind of queue and claim; `make test-all` has the others.
CHOSEN = ("eks-p5", "gke-a3mega", "oke-h100")
pytestmark = [pytest.mark.engines]


def test_the_matrix_is_not_empty() -> None:
    assert len(WIRINGS) >= 6
    assert len(PRESETS) >= 15
    pairs = {(target, run.release) for target in WIRINGS for run in runs_of(load_target(target))}
    assert len(pairs) == sum(len(presets_of(target)) for target in WIRINGS), "each preset is offered by each target"
    assert all(any(runs_of(load_target(target))) for target in TARGETS)


@pytest.mark.parametrize("name", cases(TARGETS, CHOSEN))
def test_every_preset_is_accepted_and_placed(plane: ControlPlane, name: str) -> None:
    target = load_target(name)
    setup = compose_setup(target)
    usual = list(runs_of(target))
    others = list(of_other_kinds(target, usual))
    runs = [*usual, *(run for run, _ in others)]
    charts = {run.release: chart_of(name) for run in usual} | {run.release: chart for run, chart in others}
    machines = create_machines(plane.cluster, pools(target, runs))
    made: list[Object] = []
    plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    try:
        assert setup is not None
        for machine in {run.machine for run in runs}:
            found = setup_of(setup, name, next(run for run in runs if run.machine == machine), len(machines))
            plane.cluster.apply([*classes_of(found), *found], namespace=name)
            made += [*found, *classes_of(found)]
        for run in runs:
            validate(charts[run.release], run.values)
            found = objects(render(charts[run.release], run.release, name, run.values.data))
            plane.cluster.apply([*classes_of(found), *found], namespace=name)
            made += classes_of(found)
        waiting = {run.release: run for run in runs}

        def all_run() -> bool:
            for release in [release for release in waiting if look(plane.cluster, release, namespace=name).ok]:
                del waiting[release]
            return not waiting

        try:
            wait_for(all_run, what="that every run is placed", timeout=180)
        finally:
            why = {release: look(plane.cluster, release, namespace=name).reasons for release in waiting}
            assert why == {}
        for run in runs:
            verdict = look(plane.cluster, run.release, namespace=name)
            assert (run.release, verdict.gpus) == (run.release, run.gpus)
            # pods more than machines: an MPI master; a head and a submitter of Ray
            more = next((count for kind, count in MORE_PODS.items() if run.release.endswith(kind)), name == "oke-h100")
            assert (run.release, verdict.pods - run.nodes) in {(run.release, 0), (run.release, more)}
    finally:
        plane.cluster.delete(NAMESPACE, name)
        for item in made:
            plane.cluster.delete_object(item, namespace=name)
        # a queue goes when the last run that it admitted has gone
        left = [(plane.cluster.kind(item["apiVersion"], item["kind"]), item["metadata"]["name"]) for item in made]
        wait_for(
            lambda: not any(plane.cluster.get(kind, each) for kind, each in left if not kind.namespaced),
            what="that the setup is gone",
            timeout=120,
        )
        delete_machines(plane.cluster, machines)


def of_other_kinds(target: Target, runs: list[Run]) -> Iterator[tuple[Run, Chart]]:
    """Yield the smallest run of a target as each of the other kinds; on Ray it is NeMo RL's, on the same machines."""
    least = min(runs, key=lambda run: (run.nodes < 2, run.nodes))
    ray = ("launcher=nemo-rl", f"nodes={least.nodes}", "network.transportCheck=off")
    for kind in OTHER_KINDS if target.name in WITH_OTHER_KINDS else ():
        run = replace(least, release=f"{least.release}-{kind}")
        if kind == "rayjob":
            values = load_values([VALUES / f"site.{target.name}.example.yaml"], set_values=ray)
            run = replace(run, values=values)
        yield run, compose(target, kind)


def classes_of(found: list[Object]) -> list[Object]:
    """Return the storage classes and runtime classes that objects name: the site's cluster has them already."""
    return [*foreign_classes(found).values(), *foreign_runtimes(found).values()]


def pools(target: Target, runs: list[Run]) -> list[NodePool]:
    """Return machines for all runs side by side."""
    kinds = {run.machine for run in runs}
    return [
        node_pool(target.machines[kind], sum(run.nodes for run in runs if run.machine == kind))
        for kind in sorted(kinds)
    ]


def setup_of(setup: Chart, namespace: str, run: Run, machines: int) -> list[Object]:
    """Render the target's setup chart, with room for all machines."""
    data: dict[str, Any] = dict(run.values.data)
    own = data.get("setup", {})
    data["setup"] = {**own, "quota": {**own.get("quota", {}), "nodes": machines}}
    return objects(render(setup, "setup", namespace, data))
