"""The plan of a release: what its chart will run with these values, read from the rendered objects themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from chartgen.chart import Chart
from chartgen.check import effective_values, validate
from chartgen.errors import ChartgenError
from chartgen.manifests import objects, render
from chartgen.values import Values

_QUEUE = "kueue.x-k8s.io/queue-name"


@dataclass(frozen=True)
class Plan:
    """What a release will run.

    Args:
        release: The release's name.
        namespace: Its namespace.
        chart: The chart's name.
        run: Name of the run's object; another run of the release gets another one.
        kind: Its kind: JobSet or Job.
        image: The program's image.
        nodes: Machines, one pod each.
        machine: Machine type.
        gpus: GPUs of all machines.
        parallelism: Megatron's sizes: tensor, pipeline, virtualPipeline, context, expert, and the data parallel rest.
        batch: Samples of one step: micro, global, and micro-batches of each pipeline.
        steps: Training steps; 0 when the native configuration decides.
        queue: Queue name; empty = none.
        rendezvous: Address and port where the ranks meet.
        logs: The run's directory, and where /outputs is.
        apis: API groups of all its objects, which tell the controllers that it needs.
    """

    release: str
    namespace: str
    chart: str
    run: str
    kind: str
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
    found = objects(render(chart, release, namespace, values.data))
    for item in found:
        job = _job(item)
        if job is not None:
            return _plan(chart, effective_values(chart, values), release, namespace, item, job, api_groups(found))
    raise ChartgenError(f"{chart.name} runs nothing: it has no Job or JobSet; setup charts are installed with Helm")


def describe(found: Plan) -> Iterator[tuple[str, str]]:
    """Say a plan in lines of (label, text)."""
    sizes, batch = found.parallelism, found.batch
    layout = " x ".join(
        f"{name} {size}" for name, size in sizes.items() if size > 1 or name in ("tensor", "pipeline", "data")
    )
    yield "release", f"{found.release} in namespace {found.namespace}, chart {found.chart}"
    yield "run", f"{found.kind} {found.run}"
    yield "machines", f"{found.nodes} x {found.machine} = {found.gpus} GPUs"
    yield "layout", layout
    yield (
        "batch",
        f"{batch['global']} samples a step, {batch['micro']} at a time, {batch['microBatches']} micro-batches",
    )
    yield "steps", str(found.steps or "as the program's own configuration says")
    yield "image", found.image
    yield "queue", found.queue or "none"
    yield "rendezvous", found.rendezvous
    yield "logs", found.logs


def _job(item: dict[str, Any]) -> dict[str, Any] | None:
    """Give the spec of the batch/v1 Job that an object is or holds."""
    if item["kind"] == "Job":
        spec: dict[str, Any] = item["spec"]
        return spec
    if item["kind"] == "JobSet":
        template: dict[str, Any] = item["spec"]["replicatedJobs"][0]["template"]["spec"]
        return template
    return None


def _plan(
    chart: Chart,
    values: dict[str, Any],
    release: str,
    namespace: str,
    item: dict[str, Any],
    job: dict[str, Any],
    apis: frozenset[str],
) -> Plan:
    container = job["template"]["spec"]["containers"][0]
    env = {entry["name"]: entry.get("value", "") for entry in container["env"]}
    nodes = int(job["completions"])
    gpus = nodes * int(env["GPUS_PER_NODE"])
    sizes = {
        name: int(values["parallelism"][name])
        for name in ("tensor", "pipeline", "virtualPipeline", "context", "expert")
    }
    data = gpus // (sizes["tensor"] * sizes["pipeline"] * sizes["context"])
    micro, total = int(values["batch"]["micro"]), _global_batch(values["batch"]["global"], gpus)
    return Plan(
        release=release,
        namespace=namespace,
        chart=chart.name,
        run=item["metadata"]["name"],
        kind=item["kind"],
        image=container["image"],
        nodes=nodes,
        machine=values["machineType"],
        gpus=gpus,
        parallelism={**sizes, "data": data},
        batch={"micro": micro, "global": total, "microBatches": total // (micro * data)},
        steps=int(values["steps"]),
        queue=item["metadata"]["labels"].get(_QUEUE, ""),
        rendezvous=f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}",
        logs=f"{env['RUN_DIRECTORY']} on {values['storage']['outputs']['from']}",
        apis=apis,
    )


def _global_batch(value: int | str, gpus: int) -> int:
    return int(value.removesuffix("/gpu")) * gpus if isinstance(value, str) else int(value)


def api_groups(found: Iterable[dict[str, Any]]) -> frozenset[str]:
    """Give the API groups of rendered objects, which tell the controllers that they need."""
    return frozenset(str(item["apiVersion"]).rpartition("/")[0] for item in found)
