"""The plan of a release: what its chart will run with these values, read from the rendered objects themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from chartgen.checks import effective_values, validate
from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import Values
from chartgen.kube.workers import Workers, api_groups, find_workers, program

_SIZES = ("tensor", "pipeline", "virtualPipeline", "context", "expert", "expertTensor")


@dataclass(frozen=True)
class Plan:
    """What a release will run.

    Args:
        release: The release's name.
        namespace: Its namespace.
        chart: The chart's name.
        run: Name of the run's object; another run of the release gets another one.
        kind: Its kind: JobSet, Job, PyTorchJob or Volcano Job.
        program: The launcher.
        image: The program's image.
        nodes: Machines, one pod each; an MPI master is not counted. Without GPUs: pods.
        machine: Machine type.
        gpus: GPUs of all machines; 0 for programs that prepare data.
        parallelism: Megatron's sizes: tensor, pipeline, virtualPipeline, context, expert, expertTensor if it is set,
            and the data parallel rest; empty when the program does not train.
        batch: Samples of one step: micro, global, and micro-batches of each pipeline; empty like `parallelism`.
        steps: Training steps; 0 when the native configuration decides, or the program does not train.
        queue: Queue name; empty = none.
        rendezvous: Address and port where the ranks meet; empty when they need none.
        logs: The run's directory, and where /outputs is; empty when the program has none.
        apis: API groups of all its objects, which tell the controllers that it needs.
        requests: What the program asks of each machine, {resource: quantity}.
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


def plan_release(chart: Chart, values: Values, release: str, namespace: str) -> Plan:
    """Work out what a release will run, without a cluster.

    Args:
        chart: A run chart.
        values: The user's layers.
        release: The release's name.
        namespace: Its namespace.

    Raises:
        ChartgenError: The values do not fit the chart, or the chart is no run chart.
        MissingToolError: There is no fitting Helm.
    """
    validate(chart, values)
    found = plan_objects(chart, values, objects(render(chart, release, namespace, values.data)), release, namespace)
    if found is None:
        raise ChartgenError(f"{chart.name} runs nothing: it has no job of any kind")
    return found


def plan_objects(
    chart: Chart, values: Values, rendered: Iterable[dict[str, Any]], release: str, namespace: str
) -> Plan | None:
    """Work out what the objects of a chart will run; None for setup charts and for charts of others."""
    rendered = list(rendered)
    found, effective = find_workers(rendered), effective_values(chart, values)
    if found is None or "launcher" not in effective:
        return None
    return _plan(chart, effective, release, namespace, found, api_groups(rendered))


def describe(found: Plan) -> Iterator[tuple[str, str]]:
    """Say a plan in lines of (label, text)."""
    yield "release", f"{found.release} in namespace {found.namespace}, chart {found.chart}"
    yield "run", f"{found.kind} {found.run}"
    if found.gpus:
        yield "machines", f"{found.nodes} x {found.machine} = {found.gpus} GPUs"
    else:
        yield "pods", f"{found.nodes} without GPUs"
    yield from _training(found) if found.parallelism else [("program", found.program)]
    yield "image", found.image
    yield "queue", found.queue or "none"
    yield from ((label, text) for label, text in (("rendezvous", found.rendezvous), ("logs", found.logs)) if text)


def _training(found: Plan) -> Iterator[tuple[str, str]]:
    sizes, batch = found.parallelism, found.batch
    yield (
        "layout",
        " x ".join(
            f"{name} {size}" for name, size in sizes.items() if size > 1 or name in ("tensor", "pipeline", "data")
        ),
    )
    yield (
        "batch",
        f"{batch['global']} samples a step, {batch['micro']} at a time, {batch['microBatches']} micro-batches",
    )
    yield "steps", str(found.steps or "as the program's own configuration says")


def _plan(
    chart: Chart, values: dict[str, Any], release: str, namespace: str, workers: Workers, apis: frozenset[str]
) -> Plan:
    container = program(workers.pod)
    env, resources = workers.env, container.get("resources") or {}
    gpus = workers.count * int(env.get("GPUS_PER_NODE", 0))
    trains = bool(gpus) and workers.trains
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
        batch=_batch(values, gpus, sizes["data"]) if trains else {},
        steps=int(values["steps"]) if trains else 0,
        queue=workers.queue,
        rendezvous=f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}" if "MASTER_ADDR" in env else "",
        logs=f"{env['RUN_DIRECTORY']} on {values['storage']['outputs']['from']}" if "RUN_DIRECTORY" in env else "",
        apis=apis,
        requests={**(resources.get("limits") or {}), **(resources.get("requests") or {})},
    )


def _sizes(values: dict[str, Any], gpus: int) -> dict[str, int]:
    given = values["parallelism"]
    sizes = {name: int(given[name]) for name in _SIZES if given.get(name)}
    return {**sizes, "data": gpus // (sizes["tensor"] * sizes["pipeline"] * sizes["context"])}


def _batch(values: dict[str, Any], gpus: int, data: int) -> dict[str, int]:
    micro, total = int(values["batch"]["micro"]), _global_batch(values["batch"]["global"], gpus)
    return {"micro": micro, "global": total, "microBatches": total // (micro * data)}


def _global_batch(value: int | str, gpus: int) -> int:
    return int(value.removesuffix("/gpu")) * gpus if isinstance(value, str) else int(value)
