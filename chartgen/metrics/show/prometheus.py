"""A readout in the text format of Prometheus, for the node exporter or a Pushgateway.

Source: prometheus.io/docs/instrumenting/exposition_formats (text-based format), and for the names
prometheus.io/docs/practices/naming (base units, `_total` for counters, `_ratio` for shares).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chartgen.metrics.report_data import RunFigures


def exposition(figures: RunFigures, labels: Mapping[str, str]) -> str:
    """Return all known figures as gauges.

    Args:
        labels: Labels of every sample, such as release and namespace.
    """
    return "".join(_family(name, help_text, samples, labels) for name, help_text, samples in _families(figures))


def _families(figures: RunFigures) -> Iterator[tuple[str, str, list[tuple[dict[str, str], float]]]]:
    speed, line = figures.speed, figures.timeline
    yield "step", "The last step.", [({}, float(figures.log.track.numbers[-1]))]
    if figures.planned:
        yield "steps_planned", "Steps of the whole run.", [({}, float(figures.planned))]
    if times := figures.times:
        shares = {"0.05": times.p5, "0.5": times.median, "0.95": times.p95, "0.99": times.p99}
        yield "step_seconds", "Step time in the window.", [({"quantile": key}, value) for key, value in shares.items()]
        yield "step_mean_seconds", "Mean step time in the window.", [({}, times.mean)]
    plain = {
        "tokens_per_second": ("Tokens a second, all GPUs.", speed.tokens),
        "tokens_per_second_per_gpu": ("Tokens a second and GPU.", speed.tokens_per_gpu),
        "mfu_ratio": ("Model FLOPs utilization.", figures.mfu),
        "goodput_ratio": ("Share of the wall time that counts.", line.goodput),
        "wall_seconds": ("Time since the first line.", line.wall_seconds),
        "restarts": ("Later starts.", float(len(line.restarts))),
        "lost_steps": ("Repeated steps.", float(sum(restart.lost for restart in line.restarts))),
        "loss": ("The last loss.", figures.loss.last if figures.loss else None),
        "memory_bytes": ("Most memory of a GPU.", figures.memory * 1e9 if figures.memory else None),
        "cost": ("Cost of the wall time, in the currency of the price.", figures.cost.total if figures.cost else None),
    }
    for name, (text, value) in plain.items():
        if value is not None:
            yield name, text, [({}, value)]
    if speed.tflops:
        samples = [({"attention": convention}, value * 1e12) for convention, value in speed.tflops.items()]
        yield "flops_per_gpu", "Floating point operations a second and GPU.", samples
    yield (
        "not_numbers",
        "Logged values that are nan or infinite.",
        [({"value": name}, float(len(figures.odd.get(name, ())))) for name in ("loss", "gradient", "seconds")],
    )


def _family(name: str, text: str, samples: list[tuple[dict[str, str], float]], labels: Mapping[str, str]) -> str:
    head = f"# HELP chartgen_{name} {text}\n# TYPE chartgen_{name} gauge\n"
    return head + "".join(f"chartgen_{name}{_labels({**labels, **own})} {value!r}\n" for own, value in samples)


def _labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
