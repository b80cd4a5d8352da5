"""The plan of a release: the program that its chart will run, read from the rendered objects, and what it keeps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from chartgen.checks import effective_values, job_of, validate
from chartgen.checks.automatic import decide
from chartgen.checks.outline import batch_sizes, layout_lines, layout_sizes, machine_line, recovery, speed_lines
from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import Values, override
from chartgen.kube.workloads import find_workers, program_of, used_api_versions, why_no_run

# Seconds: 8 to 10 on a lent H100 (docs/explanation/healing.md); eight GPUs need longer to begin than one.
_EXAMINATION = 20


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
        spares: Those of them that take the place of lost ones.
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
        examined: Whether machines are examined before the run starts.
        recovery: What brings a training run back after a failure: checkpoints, restarts, hang; empty without one.
        estimate: Estimated time and cost in one line; empty without.
        published: The nearest published run with its layout, in one line; empty without.
    """

    release: str
    namespace: str
    chart: str
    run: str
    kind: str
    program: str
    image: str
    nodes: int
    spares: int
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
    examined: bool = False
    recovery: dict[str, str] = field(default_factory=dict)
    estimate: str = ""
    published: str = ""


def plan_release(chart: Chart, values: Values, release: str, namespace: str) -> Plan:
    """Return the plan of a release, without a cluster.

    Raises:
        ChartgenError: The values do not fit the chart, or the chart is not a run chart.
        MissingToolError: No suitable Helm is installed.
    """
    values = decide(chart, values).values
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
    workers, effective = find_workers(rendered), effective_values(chart, values)
    if workers is None or "launcher" not in effective:
        return None
    job = job_of(chart, values)
    container, env = program_of(workers.pod), workers.env
    resources, each = container.get("resources") or {}, int(env.get("GPUS_PER_NODE", 0))
    gpus = workers.count * each
    working = gpus - workers.spares * each
    # portable sizes reach only a program whose launcher passes them on
    trains = bool(gpus) and workers.trains and (job is None or "parallelism.tensor" in job.launcher.owns)
    steps = int(effective["steps"]) if trains else 0
    logs = f"{env['RUN_DIRECTORY']} on {effective['storage']['outputs']['from']}" if "RUN_DIRECTORY" in env else ""
    return Plan(
        release=release,
        namespace=namespace,
        chart=chart.name,
        run=workers.name,
        kind=workers.kind,
        program=effective["launcher"],
        image=container["image"],
        nodes=workers.count,
        spares=workers.spares,
        machine=effective["machineType"],
        gpus=gpus,
        parallelism=layout_sizes(effective, working) if trains else {},
        batch=batch_sizes(effective, working) if trains else {},
        steps=steps,
        queue=workers.queue,
        rendezvous=f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}" if "MASTER_ADDR" in env else "",
        logs=logs,
        apis=used_api_versions(rendered),
        requests={**(resources.get("limits") or {}), **(resources.get("requests") or {})},
        examined=any("examine.py" in (item.get("data") or {}) for item in rendered),
        recovery=dict(recovery(job)) if job and job.trains else {},
        **dict(speed_lines(job, steps) if job else ()),
    )


def describe_plan(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield a plan as lines of (label, text)."""
    yield "release", f"{plan.release} in namespace {plan.namespace}, chart {plan.chart}"
    yield "run", f"{plan.kind} {plan.run}"
    yield machine_line(plan.nodes, plan.machine, plan.gpus, plan.spares)
    if plan.examined:
        yield "examination", f"about {_EXAMINATION} s on each machine before the start (run.examine)"
    yield from (
        layout_lines(plan.parallelism, plan.batch, plan.steps) if plan.parallelism else [("program", plan.program)]
    )
    texts = {"estimate": plan.estimate, "published": plan.published, "image": plan.image, "queue": plan.queue or "none"}
    texts |= {"rendezvous": plan.rendezvous, "logs": plan.logs, **plan.recovery}
    yield from ((label, text) for label, text in texts.items() if text)


_LAUNCHER = "torchrun"
_FILES = ("launchers", _LAUNCHER, "files")
_PROGRAM = ("launchers", _LAUNCHER, "program")


def keep_files(values: Values, earlier: dict[str, Any]) -> tuple[Values, list[str]]:
    """Return values with the program's files of a release where they have none, and the names of these files."""
    launchers: Any = earlier.get("launchers")
    own: Any = launchers.get(_LAUNCHER) if isinstance(launchers, dict) else None
    files = own.get("files") if isinstance(own, dict) else None
    other = values.data.get("launcher", _LAUNCHER) != _LAUNCHER or earlier.get("launcher") != _LAUNCHER
    if other or not files or not isinstance(files, dict) or values.sets(_FILES):
        return values, []
    kept: dict[str, Any] = {"launcher": _LAUNCHER, "launchers": {_LAUNCHER: {"files": files}}}
    if own.get("program") and not values.sets(_PROGRAM):
        kept["launchers"][_LAUNCHER]["program"] = own["program"]
    return override(values, "--set-json", json.dumps(kept)), sorted(files)
