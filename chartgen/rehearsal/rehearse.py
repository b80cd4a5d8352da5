"""Rehearsal: install the real release on a real control plane with simulated machines, and return a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chartgen.checks.automatic import decide
from chartgen.composer.composed import composed_chart
from chartgen.composer.node_pools import PODS_OF_A_NODE, node_pool
from chartgen.composer.origin import Composed
from chartgen.composer.target import Target
from chartgen.data.compatibility import lock
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import Values, merge_values
from chartgen.kube import CRD, RAYJOB, Cluster, Object
from chartgen.kube.controllers import INSTALLED, group_of
from chartgen.kube.node_pool import NodePool
from chartgen.kube.workloads import used_api_versions
from chartgen.programs import Progress
from chartgen.rehearsal import engines
from chartgen.rehearsal.controllers import crds_of, populated_plane
from chartgen.rehearsal.controllers.cloud import KINDS
from chartgen.rehearsal.controllers.devices import claimed_classes
from chartgen.rehearsal.controlplane import ControlPlane, namespace_object
from chartgen.rehearsal.engine_download import MayBuild, get
from chartgen.rehearsal.foreign import (
    foreign_claims,
    foreign_classes,
    foreign_drivers,
    foreign_inputs,
    foreign_kinds,
    foreign_priorities,
    foreign_runtimes,
    register,
    simulated_driver,
)
from chartgen.rehearsal.sandbox import Sandbox, up
from chartgen.rehearsal.verdict import Verdict, judge_release, patience
from chartgen.releases import helm_release
from chartgen.releases.plan import Plan, plan_release

_DEVICES = ("resource.nvidia.com", "resource.k8s.io")
# API group, or version of one that controllers share -> the engine of its controller.
CONTROLLERS = (
    *((group, controller.name.lower()) for controller in INSTALLED for group in controller.groups),
    *((group, each.through.name.lower()) for each in INSTALLED if each.through for group in each.groups),
    ("networking.gke.io", "cloud-kinds"),
    ("resource.nvidia.com", "cloud-kinds"),
    ("storage.k8s.io", "cloud-storage"),
    *((group, "devices") for group in _DEVICES),
)
SETUP_RELEASE = "setup"
NO_TEAMS: Mapping[str, Values] = MappingProxyType({})
# A common machine for pods without GPUs: an MPI master, or the pods of a data program.
_CPU_CAPACITY = {"cpu": "16", "memory": "64Gi", "pods": PODS_OF_A_NODE}


@dataclass(frozen=True)
class Rehearsal:
    """Result of a rehearsal.

    Args:
        plan: The plan of the release.
        machines: Number of simulated machines.
        verdict: The verdict.
        simulated: Other simulated parts of the cluster, such as `storage class premium`.
    """

    plan: Plan
    machines: int
    verdict: Verdict
    simulated: tuple[str, ...] = ()


@dataclass(frozen=True)
class RehearsalStage:
    """Environment of a target's releases: simulated machines, controllers, and its setup chart."""

    pools: tuple[NodePool, ...]  # the machines: those of the run, and some without GPUs for other pods
    controllers: tuple[str, ...]  # names of the controllers
    setup: Chart | None  # the setup chart; None without a setup
    setups: tuple[tuple[str, dict[str, Any]], ...]  # namespace and values of each release of the setup chart
    # Replacements for claims, classes, drivers and kinds of the cluster: kind and name -> manifests; none for what
    # simulated pods start without
    substitutes: dict[str, list[Object]]
    device_classes: tuple[str, ...] = ()  # classes of the devices that the run claims
    namespaces: tuple[str, ...] = ()  # the namespaces of the run and of the queues that the setup chart makes

    @property
    def simulated(self) -> tuple[str, ...]:
        """Return the simulated parts of the cluster apart from the machines."""
        return tuple(self.substitutes)


def rehearse(  # noqa: PLR0913 - independent options, passed by name
    target: Target,
    values: Values,
    *,
    release: str = "rehearsal",
    namespace: str = "default",
    workload: str | None = None,
    machines: int | None = None,
    timeout: float | None = None,
    teams: Mapping[str, Values] = NO_TEAMS,
    on_plan: Callable[[Plan], None] | None = None,
    progress: Progress | None = None,
    may_build: MayBuild | None = None,
) -> Rehearsal:
    """Install a release of a target on a throw-away control plane, judge whether it runs, and remove everything.

    Args:
        workload: The workload kind; default the target's.
        machines: Number of simulated machines; default the number that the run requests.
        timeout: Seconds without progress until the rehearsal gives up; by default more for more machines.
        teams: Namespace -> values of another release of the setup chart in it, above the others.
        on_plan: Receives the plan before anything starts.
        may_build: Receives the programs that must be built, and returns whether to; default: they are built.

    Raises:
        ChartgenError: The values do not fit, or the release is rejected.
        MissingToolError: Helm or an engine is missing.
    """
    helm_release.check_name(release)
    get(["helm"], progress=progress, may_build=may_build)
    chart = composed_chart("compose", target, workload)
    values = decide(chart, values).values
    planned = plan_release(chart, values, release, namespace)
    if on_plan:
        on_plan(planned)
    count = planned.nodes if machines is None else machines
    stage = prepare_stage(chart, target, values, planned, count, teams)
    report = progress or (lambda _: None)
    for assumption in assumptions(target, planned):
        report(f"assuming that {assumption}")
    get(engines.needed_engines(stage.controllers), progress=report, may_build=may_build)
    with _stage_plane(stage, report) as plane:
        report(f"installing release {release}")
        helm_release.install(chart, release, values.data, helm_release.Place(namespace, kubeconfig=plane.kubeconfig))
        limit = patience(count) if timeout is None else timeout
        verdict = judge_release(plane.cluster, release, namespace=namespace, timeout=limit, progress=progress)
    return Rehearsal(planned, count, verdict, stage.simulated)


def open_sandbox(  # noqa: PLR0913 - independent options, passed by name
    name: str,
    target: Target,
    values: Values,
    *,
    machines: int | None = None,
    setup: bool = True,
    teams: Mapping[str, Values] = NO_TEAMS,
    progress: Progress | None = None,
    may_build: MayBuild | None = None,
) -> Sandbox:
    """Start a sandbox with a target's simulated machines, controllers and setup chart; see `sandbox.up`.

    Args:
        values: The user's layers, for the setup chart.
        machines: Number of simulated machines; default the values' `nodes`.
        setup: Whether to install the setup chart; its controllers always run.
        teams: As for `rehearse`.
        may_build: As for `rehearse`.
    """
    get(["helm"], progress=progress, may_build=may_build)
    chart = composed_chart("compose", target)
    planned = plan_release(chart, values, "sandbox", "default")
    stage = prepare_stage(chart, target, values, planned, planned.nodes if machines is None else machines, teams)
    get(engines.needed_engines(stage.controllers), progress=progress, may_build=may_build)

    def prepare(plane: ControlPlane) -> None:
        _create_substitutes(plane.cluster, stage, progress)
        if setup:
            install_setup(stage, plane.kubeconfig, progress)

    return up(
        name,
        machines=stage.pools,
        controllers=stage.controllers,
        device_classes=stage.device_classes,
        setup=prepare,
        progress=progress,
    )


def prepare_stage(
    chart: Chart,
    target: Target,
    values: Values,
    planned: Plan,
    machines: int,
    teams: Mapping[str, Values] = NO_TEAMS,
) -> RehearsalStage:
    """Return the environment of a target's releases.

    Args:
        planned: The plan of the chart's release, with the requirements beside the setup chart.
        machines: Number of simulated machines of the planned type.
        teams: As for `rehearse`.
    """
    workload = chart.origin.workload if isinstance(chart.origin, Composed) else None
    setup = composed_chart("compose_setup", target, workload)
    setups = (("default", values.data), *((team, merge_values(values.data, own.data)) for team, own in teams.items()))
    made = [item for place, data in setups if setup for item in objects(render(setup, SETUP_RELEASE, place, data))]
    every = [*made, *objects(render(chart, planned.release, planned.namespace, values.data))]
    claims, classes = foreign_claims(every, planned.namespace), foreign_classes(every)
    substitutes = {f"claim {name}": [simulated_driver(), *claim] for name, claim in claims.items()}
    substitutes |= {f"storage class {name}": [simulated_driver(), each] for name, each in classes.items()}
    substitutes |= {f"runtime class {name}": [runtime] for name, runtime in foreign_runtimes(every).items()}
    substitutes |= {f"priority class {name}": [priority] for name, priority in foreign_priorities(every).items()}
    versions = planned.apis | used_api_versions([*made, *chain.from_iterable(substitutes.values())])
    apis = versions | {group_of(version) for version in versions}
    substitutes |= {f"CSI driver {name}": [driver] for name, driver in foreign_drivers(every).items()}
    substitutes |= {name: [] for name in foreign_inputs(every)}
    controllers = tuple(dict.fromkeys(name for api, name in CONTROLLERS if api in apis))
    kinds = foreign_kinds(every, crds_of(controllers), KINDS)
    substitutes |= {name: [kind] for name, kind in kinds.items()}
    others = NodePool("cpu", 1 if planned.gpus else planned.nodes, _CPU_CAPACITY, counted=False)
    machine = target.machines[planned.machine]
    offered = replace(machine, capacity={**assumed(target, planned), **machine.capacity})
    pools = (node_pool(offered, machines), others)
    found = (item["metadata"].get("namespace") for item in made)
    namespaces = tuple(dict.fromkeys([planned.namespace, *teams, *filter(None, found)]))
    own_setup = setup if made else None
    return RehearsalStage(pools, controllers, own_setup, setups, substitutes, claimed_classes(every), namespaces)


def assumptions(target: Target, planned: Plan) -> Iterator[str]:
    """Report the assumptions of a rehearsal about the cluster, which may not be true."""
    for resource, size in assumed(target, planned).items():
        yield f"each {planned.machine} offers {size} {resource}, which {target.name} does not list"
    is_claiming = not {group_of(each) for each in planned.apis}.isdisjoint(_DEVICES)
    if planned.queue and is_claiming and any(fragment.name == "kueue" for fragment in target.fragments):
        yield "Kueue counts each device class that the run claims as a resource of the same name"
    if planned.kind == RAYJOB.name:
        yield "Ray starts the program: simulated machines have no Ray, so KubeRay never sees its job, nor the job's end"
    for row in lock()["integrations"]:
        if planned.queue and planned.kind == row["kind"]:
            yield f"{row['of']} is configured for {row['framework']}, which {row['from']} and newer disable by default"


def assumed(target: Target, planned: Plan) -> dict[str, str]:
    """Return requests of pods that the target's machine does not list, such as adapters of another device plugin."""
    listed = target.machines[planned.machine].capacity
    return {name: size for name, size in planned.requests.items() if planned.gpus and name not in listed}


def install_setup(stage: RehearsalStage, kubeconfig: Path, progress: Progress | None = None) -> None:
    """Install a stage's setup chart, if any, in each of its namespaces."""
    if not (chart := stage.setup):
        return
    for namespace, values in stage.setups:
        if progress:
            progress(f"installing {chart.name} in namespace {namespace}")
        helm_release.install(chart, SETUP_RELEASE, values, helm_release.Place(namespace, kubeconfig=kubeconfig))


@contextmanager
def _stage_plane(stage: RehearsalStage, report: Progress) -> Iterator[ControlPlane]:
    """Yield a new control plane with the stage on it, for the time of a `with` block."""
    with populated_plane(stage.pools, stage.controllers, stage.device_classes, report) as plane:
        _create_substitutes(plane.cluster, stage, report)
        install_setup(stage, plane.kubeconfig, report)
        yield plane


def _create_substitutes(cluster: Cluster, stage: RehearsalStage, progress: Progress | None) -> None:
    """Make replacements for objects of a real cluster."""
    if progress and stage.simulated:
        progress(f"simulating {', '.join(stage.simulated)}")
    cluster.apply(map(namespace_object, stage.namespaces))
    every = list(chain.from_iterable(stage.substitutes.values()))
    register(cluster, [each for each in every if each["kind"] == CRD.name])
    cluster.apply(each for each in every if each["kind"] != CRD.name)
