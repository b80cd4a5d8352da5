"""The plan of a release: the program that its chart will run, read from the rendered objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from chartgen.checks import effective_values, job_of, validate
from chartgen.checks.job import Job, data_parallel, global_batch, micro_batches
from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import Values
from chartgen.kube.workloads import Workers, find_workers, program_of, used_api_versions, why_no_run
from chartgen.releases.recovery import recovery

_SIZES = ("tensor", "pipeline", "virtualPipeline", "context", "expert", "expertTensor")


@dataclass(frozen=True)
class Plan:
    """Program, machines and sizes of a release.

    Args:
        release: The release's name.
        namespace: Its namespace.
        chart: The chart's name.
        run: Name of the run's object, different for each run of the release.
        kind: Its kind: JobSet, Job, PyTorchJob, MPIJob or Volcano Job.
        program: The launcher.
        image: The program's image.
        nodes: Machines, one pod each; an MPI master is not counted. Without GPUs: pods.
        machine: Machine type.
        gpus: GPUs of all machines; 0 for programs that prepare data.
        parallelism: Megatron's sizes: tensor, pipeline, virtualPipeline, context, expert, expertTensor if set, and the
            resulting data parallel size; empty when the program does not train.
        batch: Samples per step: micro, global, and micro-batches of each pipeline; empty like `parallelism`.
        steps: Training steps; 0 when the native configuration decides, or the program does not train.
        queue: Queue name; empty = none.
        rendezvous: Rendezvous address and port of the ranks; empty when they need none.
        logs: The run's directory, and the location of /outputs; empty when the program has none.
        apis: API versions of all its objects, which determine the required controllers.
        requests: Resource requests of the program on each machine, {resource: quantity}.
        recovery: What brings a training run back after a failure: checkpoints, restarts, hang; empty without one.
    """

    release: str
    namespace: str
    chart: str
    run: str
    kind: str
    program: str
    image: str
    nodes: int
    machine: str
    gpus: int
    parallelism: dict[str, int]
    batch: dict[str, int]
    steps: int
    queue: str
    rendezvous: str
    logs: str
    apis: frozenset[str]
    requests: dict[str, str]
    recovery: dict[str, str] = field(default_factory=dict)


def plan_release(chart: Chart, values: Values, release: str, namespace: str) -> Plan:
    """Return the plan of a release, without a cluster.

    Raises:
        ChartgenError: The values do not fit the chart, or the chart is not a run chart.
        MissingToolError: No suitable Helm is installed.
    """
    validate(chart, values)
    rendered = objects(render(chart, release, namespace, values.data))
    found = plan_objects(chart, values, rendered, release, namespace)
    if found is None:
        raise ChartgenError(why_no_run(chart.name, rendered))
    return found


def plan_objects(
    chart: Chart, values: Values, rendered: Iterable[dict[str, Any]], release: str, namespace: str
) -> Plan | None:
    """Return the plan of a chart's objects; None for setup charts and third-party charts."""
    rendered = list(rendered)
    found, effective = find_workers(rendered), effective_values(chart, values)
    if found is None or "launcher" not in effective:
        return None
    job = job_of(chart, values)
    # portable sizes reach only a program whose launcher passes them on
    sized = job is None or "parallelism.tensor" in job.launcher.owns
    plan = _plan(chart, effective, release, namespace, found, used_api_versions(rendered), sized=sized)
    return replace(plan, recovery=dict(recovery(job))) if job and job.trains else plan


def describe_plan(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield a plan as lines of (label, text)."""
    yield "release", f"{plan.release} in namespace {plan.namespace}, chart {plan.chart}"
    yield "run", f"{plan.kind} {plan.run}"
    yield _machines(plan.nodes, plan.machine, plan.gpus)
    yield from _training(plan.parallelism, plan.batch, plan.steps) if plan.parallelism else [("program", plan.program)]
    yield "image", plan.image
    yield "queue", plan.queue or "none"
    yield from ((label, text) for label, text in (("rendezvous", plan.rendezvous), ("logs", plan.logs)) if text)
    yield from plan.recovery.items()


def outline(job: Job) -> Iterator[tuple[str, str]]:
    """Yield what a job's values alone determine of its plan, without Helm, as lines of (label, text)."""
    values, owns = job.values, job.launcher.owns
    gpus = 0 if job.launcher.task == "data" else job.world
    storage, queue = values.get("storage", {}), values.get("queue", {})  # a target of one's own may lack both
    outputs = storage.get("outputs", {}).get("from", "")
    yield _machines(job.nodes, values["machineType"], gpus)
    yield "program", job.launcher.name
    if job.trains and "parallelism.tensor" in owns:
        yield from _training(_sizes(values, gpus), _batch(values, gpus), int(values["steps"]))
    yield "image", job.image or "none"
    yield "queue", queue.get("name") or "none"
    yield "outputs", outputs or "none"
    if job.trains:
        yield from recovery(job)


def _machines(nodes: int, machine: str, gpus: int) -> tuple[str, str]:
    return ("machines", f"{nodes} x {machine} = {gpus} GPUs") if gpus else ("pods", f"{nodes} without GPUs")


def _training(sizes: dict[str, int], batch: dict[str, int], steps: int) -> Iterator[tuple[str, str]]:
    shown = {name: size for name, size in sizes.items() if size > 1 or name in ("tensor", "pipeline", "data")}
    yield "layout", " x ".join(f"{name} {size}" for name, size in shown.items())
    yield (
        "batch",
        f"{batch['global']} samples a step, {batch['micro']} at a time, {batch['microBatches']} micro-batches",
    )
    yield "steps", str(steps or "set by the program's own configuration")


def _plan(
    chart: Chart,
    values: dict[str, Any],
    release: str,
    namespace: str,
    workers: Workers,
    apis: frozenset[str],
    *,
    sized: bool,
) -> Plan:
    container = program_of(workers.pod)
    env, resources = workers.env, container.get("resources") or {}
    gpus = workers.count * int(env.get("GPUS_PER_NODE", 0))
    trains = bool(gpus) and workers.trains and sized
    sizes = _sizes(values, gpus) if trains else {}
    return Plan(
        release=release,
        namespace=namespace,
        chart=chart.name,
        run=workers.name,
        kind=workers.kind,
        program=values["launcher"],
        image=container["image"],
        nodes=workers.count,
        machine=values["machineType"],
        gpus=gpus,
        parallelism=sizes,
        batch=_batch(values, gpus) if trains else {},
        steps=int(values["steps"]) if trains else 0,
        queue=workers.queue,
        rendezvous=f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}" if "MASTER_ADDR" in env else "",
        logs=f"{env['RUN_DIRECTORY']} on {values['storage']['outputs']['from']}" if "RUN_DIRECTORY" in env else "",
        apis=apis,
        requests={**(resources.get("limits") or {}), **(resources.get("requests") or {})},
    )


def _sizes(values: dict[str, Any], gpus: int) -> dict[str, int]:
    given = values["parallelism"]
    return {name: int(given[name]) for name in _SIZES if given.get(name)} | {"data": data_parallel(values, gpus)}


def _batch(values: dict[str, Any], gpus: int) -> dict[str, int]:
    sizes = {"micro": int(values["batch"]["micro"]), "global": global_batch(values, gpus)}
    return {**sizes, "microBatches": micro_batches(values, gpus)}
