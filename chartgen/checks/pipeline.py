"""Pipelines whose first or last stage has layers of its own number, as the program's configuration may say."""

from __future__ import annotations

from collections.abc import Iterator

from chartgen.checks.claim import Check, Claim
from chartgen.checks.job import Job


def own_stages(job: Job) -> dict[str, int]:
    """Return the layers of the first and of the last stage, key -> layers, where the configuration says them."""
    config = job.own.get("config") or {}
    nested = config.get("model")
    found: dict[str, int] = {}
    for part in ("first", "last"):
        flat, deep = f"decoder-{part}-pipeline-num-layers", f"num_layers_in_{part}_pipeline_stage"
        places = {flat: config.get(flat), f"model.{deep}": nested.get(deep) if isinstance(nested, dict) else None}
        given = ((f"launchers.{job.launcher.name}.config.{key}", layers) for key, layers in places.items())
        found |= {key: layers for key, layers in given if isinstance(layers, int) and layers}
    return found


def uneven_stages(job: Job) -> Iterator[Claim]:
    """Where the first or the last stage has layers of its own number, the others share the rest evenly."""
    own, stages, chunks = own_stages(job), job.parallel("pipeline"), job.parallel("virtualPipeline")
    others, rest = stages - len(own), job.pipeline_layers - sum(own.values())
    if not own:
        return
    also = ("parallelism.pipeline", "model.layers")
    if others < 0 or rest < others or (rest % others if others else rest):
        message = f"{' and '.join(map(str, own.values()))} of {job.pipeline_layers} layers leave {rest} for {others}"
        yield Claim(next(iter(own)), f"{message} other stages of pipeline {stages}", _evenly(job, others), also)
    elif any(size % chunks for size in (*own.values(), rest // max(others, 1))):
        sizes = ", ".join(map(str, dict.fromkeys((*own.values(), rest // max(others, 1)))))
        message = f"stages of {sizes} layers cannot all be divided by {chunks}"
        yield Claim("parallelism.virtualPipeline", message, "use 1", (*own, *also))


def _evenly(job: Job, others: int) -> str:
    """Say how many layers the stages with their own number may have together, nearest to what they have."""
    layers, given = job.pipeline_layers, sum(own_stages(job).values())
    fits = [size for size in range(1, layers) if others > 0 and not (layers - size) % others]
    return f"give them {min(fits, key=lambda size: abs(size - given))} layers in all" if fits else "remove it"


STAGES = (Check(uneven_stages, "megatron/core/transformer/transformer_config.py"),)
