"""Rehearsal: the real release on a real control plane with simulated machines, and a verdict, without any cloud."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from chartgen.composer.assembly import compose, compose_setup
from chartgen.composer.target import Machine, Target
from chartgen.data.compatibility import lock
from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.program import HelmError
from chartgen.helm.values import Values
from chartgen.kube import Cluster, Object, connect
from chartgen.kube.workers import api_groups
from chartgen.programs import Progress
from chartgen.rehearsal import engines
from chartgen.rehearsal.controllers import start_controllers
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.engine_build import build
from chartgen.rehearsal.judging import judge, patience
from chartgen.rehearsal.sandbox import Sandbox, up
from chartgen.rehearsal.simulated_nodes import NodePool, create_machines, delete_machines
from chartgen.rehearsal.storage import foreign_classes
from chartgen.releases import helm_release as releases
from chartgen.releases.plan import Plan, plan_release
from chartgen.releases.status.verdict import Verdict

# API group -> the controller that serves it.
CONTROLLERS = {
    "jobset.x-k8s.io": "jobset",
    "kueue.x-k8s.io": "kueue",
    "batch.volcano.sh": "volcano",
    "scheduling.volcano.sh": "volcano",
    "kubeflow.org": "training-operator",
    "networking.gke.io": "cloud-kinds",
    "resource.nvidia.com": "cloud-kinds",
    "storage.k8s.io": "cloud-storage",
}
SETUP_RELEASE = "setup"
# The kubelet's default limit, which clouds keep or lower.
_PODS_OF_A_NODE = "110"
# A machine such as every cluster has, for what needs no GPU: an MPI master, or each pod of a program for data.
_CPU_CAPACITY = {"cpu": "16", "memory": "64Gi", "pods": _PODS_OF_A_NODE}


@dataclass(frozen=True)
class Rehearsal:
    """What a rehearsal found.

    Args:
        plan: What was to run.
        machines: Simulated machines.
        verdict: What became of it.
        simulated: What else of the cluster had a stand-in, such as `storage class premium`.
    """

    plan: Plan
    machines: int
    verdict: Verdict
    simulated: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stage:
    """What a target needs around its releases: simulated machines, controllers, and its setup chart.

    Args:
        pools: The machines: those of the run, and some without GPUs for what needs none.
        controllers: Names of the controllers.
        setup: The setup chart; None when there is nothing to set up.
        values: The user's layers, which the setup chart takes too.
        classes: Storage classes that the cluster brings, by name, as the manifests of their stand-ins.
    """

    pools: tuple[NodePool, ...]
    controllers: tuple[str, ...]
    setup: Chart | None
    values: Values
    classes: dict[str, Object]

    @property
    def simulated(self) -> tuple[str, ...]:
        """What of the cluster has a stand-in beside the machines."""
        return tuple(f"storage class {name}" for name in self.classes)


def rehearse(  # noqa: PLR0913 - each is a choice of its own, named by the caller
    target: Target,
    values: Values,
    *,
    release: str = "rehearsal",
    workload: str | None = None,
    machines: int | None = None,
    context: str | None = None,
    timeout: float | None = None,
    on_plan: Callable[[Plan], None] | None = None,
    progress: Progress | None = None,
) -> Rehearsal:
    """Install a release of a target on a throw-away control plane, watch what becomes of it, and remove everything.

    Args:
        target: The target.
        values: The user's layers.
        release: The release's name.
        workload: Another workload kind than the target's.
        machines: Simulated machines; as many as the run asks for when None.
        context: A kubeconfig context of a disposable cluster where kwok and the controllers run; a new control plane of
            plain processes when None.
        timeout: Seconds without progress after which it is given up; by default more for more machines.
        on_plan: Gets the plan before anything starts.
        progress: Gets one line for each step.

    Raises:
        ChartgenError: The values do not fit, or the release is refused.
        MissingToolError: Helm, an engine or the cluster is missing.
    """
    releases.check_name(release)
    build(["helm"], progress=progress)
    chart = compose(target, workload)
    place = releases.Place("default" if context is None else f"rehearsal-{secrets.token_hex(4)}", context=context)
    planned = plan_release(chart, values, release, place.namespace)
    if on_plan:
        on_plan(planned)
    count = planned.nodes if machines is None else machines
    stage = prepare_stage(chart, target, values, planned, count)
    say = progress or (lambda _: None)
    for each in assumptions(target, planned):
        say(f"assuming that {each}")
    with _own(stage, say) if context is None else _borrowed(stage, place, say) as (cluster, place):
        say(f"installing release {release}")
        releases.install(chart, release, values.data, place)
        try:
            limit = patience(count) if timeout is None else timeout
            verdict = judge(cluster, release, namespace=place.namespace, timeout=limit, progress=progress)
        finally:
            if context is not None:
                releases.uninstall(release, place)
    return Rehearsal(planned, count, verdict, stage.simulated if context is None else ())


def open_sandbox(
    name: str,
    target: Target,
    values: Values,
    *,
    machines: int | None = None,
    setup: bool = True,
    progress: Progress | None = None,
) -> Sandbox:
    """Start a sandbox with a target's simulated machines, controllers and setup chart; see `sandbox.up`.

    Args:
        name: The sandbox's name.
        target: The target.
        values: The user's layers, for the setup chart.
        machines: Simulated machines; the values' `nodes` when None.
        setup: Whether to install the setup chart; the controllers that it needs run in any case.
        progress: Gets one line for each step.
    """
    build(["helm"], progress=progress)
    chart = compose(target)
    planned = plan_release(chart, values, "sandbox", "default")
    stage = prepare_stage(chart, target, values, planned, planned.nodes if machines is None else machines)
    build(engines.needed(stage.controllers), progress=progress)

    def prepare(plane: ControlPlane) -> None:
        _stand_in(plane.cluster, stage, progress)
        if setup:
            install_setup(stage, releases.Place(kubeconfig=plane.kubeconfig), progress)

    return up(name, machines=stage.pools, controllers=stage.controllers, setup=prepare, progress=progress)


def prepare_stage(chart: Chart, target: Target, values: Values, planned: Plan, machines: int) -> Stage:
    """Work out what a target needs around its releases.

    Args:
        chart: The chart of the release.
        target: The target.
        values: The user's layers.
        planned: The plan of its release, which says what the release needs beside the setup chart.
        machines: Simulated machines of the planned type.
    """
    setup = compose_setup(target)
    made = objects(render(setup, SETUP_RELEASE, "default", values.data)) if setup else []
    classes = foreign_classes([*made, *objects(render(chart, planned.release, planned.namespace, values.data))])
    apis = planned.apis | api_groups([*made, *classes.values()])
    controllers = tuple(dict.fromkeys(name for group, name in CONTROLLERS.items() if group in apis))
    others = NodePool("cpu", 1 if planned.gpus else planned.nodes, _CPU_CAPACITY, counted=False)
    machine = target.machines[planned.machine]
    offered = replace(machine, capacity={**assumed(target, planned), **machine.capacity})
    pools = (node_pool(offered, machines), others)
    return Stage(pools, controllers, setup if made else None, values, classes)


def assumptions(target: Target, planned: Plan) -> Iterator[str]:
    """Report what a rehearsal takes for granted of the cluster, which may not have it."""
    for resource, size in assumed(target, planned).items():
        yield f"each {planned.machine} offers {size} {resource}, which {target.name} does not list"
    for row in lock()["integrations"]:
        if planned.queue and planned.kind == row["kind"]:
            yield f"{row['of']} is configured for {row['framework']}, which {row['from']} and newer leave switched off"


def assumed(target: Target, planned: Plan) -> dict[str, str]:
    """Return what pods ask for and the target's machine does not list, such as adapters of another device plugin."""
    listed = target.machines[planned.machine].capacity
    return {name: size for name, size in planned.requests.items() if planned.gpus and name not in listed}


def node_pool(machine: Machine, count: int) -> NodePool:
    """Describe simulated machines of a type."""
    labels = {"node.kubernetes.io/instance-type": machine.name, **machine.labels}
    return NodePool(machine.name, count, {**machine.capacity, "pods": _PODS_OF_A_NODE}, labels, machine.taints)


def install_setup(stage: Stage, place: releases.Place, progress: Progress | None = None) -> None:
    """Install a stage's setup chart, when it has anything to set up."""
    if stage.setup:
        if progress:
            progress(f"installing {stage.setup.name}")
        releases.install(stage.setup, SETUP_RELEASE, stage.values.data, place)


@contextmanager
def _own(stage: Stage, say: Progress) -> Iterator[tuple[Cluster, releases.Place]]:
    """Return a new control plane with the stage on it, for the time of a `with` block."""
    build(engines.needed(stage.controllers), progress=say)
    with ControlPlane(progress=say) as plane:
        start_controllers(plane, stage.controllers, progress=say)
        create_machines(plane.cluster, stage.pools, progress=say)
        _stand_in(plane.cluster, stage, say)
        place = releases.Place(kubeconfig=plane.kubeconfig)
        install_setup(stage, place, say)
        yield plane.cluster, place


def _stand_in(cluster: Cluster, stage: Stage, progress: Progress | None) -> None:
    """Make what the real cluster would bring; an existing cluster has its own."""
    if progress and stage.simulated:
        progress(f"simulating {', '.join(stage.simulated)}")
    cluster.apply(stage.classes.values())


@contextmanager
def _borrowed(stage: Stage, place: releases.Place, say: Progress) -> Iterator[tuple[Cluster, releases.Place]]:
    """Use a namespace and machines of its own on an existing cluster, and take both away again."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place.namespace}}
    # machines are named after the namespace, so that they are no machines of the cluster's own
    pools = [replace(pool, name=f"{place.namespace}-{pool.name}") for pool in stage.pools]
    with connect(context=place.context) as cluster:
        cluster.apply([namespace])
        try:
            create_machines(cluster, pools, progress=say)
            install_setup(stage, place, say)
            yield cluster, place
        finally:
            say("removing what the rehearsal made")
            if stage.setup:
                _uninstall_setup(place)
            delete_machines(cluster, [name for pool in pools for name in pool.names])
            cluster.delete_object(namespace)


def _uninstall_setup(place: releases.Place) -> None:
    try:
        releases.uninstall(SETUP_RELEASE, place)
    except HelmError:
        raise
    except ChartgenError:
        return  # it was refused, so that there is nothing to remove
