"""Judge the estimates of speed by measured runs: python tests/programs/judge_speed.py ROWS.json --output json.

A row has the form of NVIDIA's published tables: model, system, gpus, precision, globalBatch, microBatch,
sequenceLength, fsdp, tensor, pipeline, context, virtualPipeline, expert, container, task, tokensPerSecondPerGpu.
`median` and `p90` are of the absolute error of tokens/s, `coverage` the share of rows within their ranges, `order` the
share of pairs of one model and system, more than 10 % apart, that are in the right order.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

from chartgen.data.gpus import all_gpus
from chartgen.data.models import find_architecture
from chartgen.estimator import Estimate, Run, estimate_run
from chartgen.estimator.estimate import hardware_of, months_of

_APART = 1.1
_MOST = 2**40  # of any size; more is a mistake


def run_of(row: Mapping[str, Any]) -> Run | str:
    """Return the run that a row describes, or why it describes none."""
    model = find_architecture(str(row.get("model", "")))
    system = str(row.get("system", "")).lower().removeprefix("dgx-").removeprefix("hgx-")
    gpu = next((gpu for name, gpu in all_gpus().items() if name.startswith(f"{system}-")), None)
    hardware = hardware_of(gpu) if gpu else None
    precision, months = _precision(str(row.get("precision", ""))), months_of(str(row.get("container", "")))
    known = {"model": model, "system": hardware, "precision": precision, "container": months}
    if model is None or hardware is None or precision is None or months is None:
        return "unknown " + ", ".join(f"{key} {row.get(key)!r}" for key, found in known.items() if found is None)
    if "w/o mtp" in str(row["model"]).lower():
        model = replace(model, extra=0)
    sizes = {key: _size(row.get(key)) for key in _SIZES}
    wrong = [key for key, size in sizes.items() if size is None]
    if wrong:
        return f"no size: {', '.join(wrong)}"
    if (sizes["gpus"] or 1) < math.prod(sizes[key] or 1 for key in ("tensor", "pipeline", "context")):
        return "fewer GPUs than one copy of the model takes"
    task = str(row.get("task", "")).lower()
    return Run(
        model,
        hardware,
        precision=precision,
        software=months,
        sharded=(_size(row.get("fsdp")) or 1) > 1,
        drops="tokendrop" in str(row["model"]).lower(),
        adapters=task in ("lora", "peft"),
        **dict[str, Any]({_SIZES[key]: size for key, size in sizes.items() if size is not None}),
    )


_SIZES = {
    "gpus": "gpus",
    "sequenceLength": "sequence",
    "globalBatch": "global_batch",
    "microBatch": "micro_batch",
    "tensor": "tensor",
    "pipeline": "pipeline",
    "virtualPipeline": "virtual",
    "context": "context",
    "expert": "expert",
}


def _size(value: Any) -> int | None:
    """Return a size: 1 for an empty cell or a switch that is off, None for no number."""
    try:
        number = int(float(value or 1))
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 < number <= _MOST else None


def _precision(name: str) -> str | None:
    words = {"MX": "mxfp8", "FP8": "fp8", "FP4": "nvfp4", "BF16": "bf16"}
    return next((found for word, found in words.items() if word in name.upper()), None)


def predict(row: Mapping[str, Any], constants: Mapping[str, float] | None = None) -> Estimate | str:
    """Return the estimate of a row, or why there is none."""
    run = run_of(row)
    if isinstance(run, str):
        return run
    return estimate_run(run, constants) or f"no {run.precision} on {run.hardware.gpu}"


def judge(rows: Sequence[Any], constants: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Compare the estimates of rows with what was measured."""
    answers = [_row(row, constants) for row in rows]
    judged = [answer for answer in answers if answer.get("error") is not None]
    errors = sorted(abs(answer["error"]) for answer in judged)
    covered = [answer["low"] <= answer["measured"] <= answer["high"] for answer in judged]
    return {
        "rows": len(rows),
        "judged": len(judged),
        "unpredicted": sum("reason" in answer for answer in answers),
        "median": quantile(errors, 0.5),
        "p90": quantile(errors, 0.9),
        "coverage": sum(covered) / len(covered) if covered else None,
        "order": _order(judged),
        "predictions": answers,
    }


def _row(row: Any, constants: Mapping[str, float] | None) -> dict[str, Any]:
    if not isinstance(row, dict):
        return {"reason": "no object"}
    names = {key: row.get(key) for key in ("model", "system", "precision", "container", "gpus", "source")}
    found = predict(row, constants)
    if isinstance(found, str):
        return {**names, "reason": found}
    speed = found.tokens_per_second_per_gpu
    answer = {**names, "low": speed.low, "middle": speed.middle, "high": speed.high, "unmeasured": found.unmeasured}
    measured = row.get("tokensPerSecondPerGpu")
    if not isinstance(measured, int | float) or measured <= 0:
        return {**answer, "measured": None, "error": None}
    return {**answer, "measured": measured, "error": speed.middle / measured - 1}


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return a quantile of sorted numbers, between neighbours in proportion."""
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _order(judged: Sequence[Mapping[str, Any]]) -> float | None:
    right = [
        (one["middle"] > other["middle"]) == (one["measured"] > other["measured"])
        for one, other in combinations(judged, 2)
        if (one["model"], one["system"]) == (other["model"], other["system"])
        and max(one["measured"], other["measured"]) > _APART * min(one["measured"], other["measured"])
    ]
    return sum(right) / len(right) if right else None


def main(arguments: Sequence[str]) -> int:
    """Print the judgement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path, help="JSON file with a list of rows")
    parser.add_argument("--output", choices=["text", "json"], default="text")
    options = parser.parse_args(arguments)
    try:
        rows = json.loads(options.rows.read_text())
    except (OSError, ValueError, RecursionError) as error:
        parser.error(f"{options.rows}: {error}")
    if not isinstance(rows, list):
        parser.error(f"{options.rows}: no list of rows")
    found = judge(rows)
    sys.stdout.write((json.dumps(found, indent=1) if options.output == "json" else _text(found)) + "\n")
    return 0


def _text(found: Mapping[str, Any]) -> str:
    lines = [_line(row) for row in found["predictions"]]
    figures = {key: value for key, value in found.items() if key != "predictions" and value is not None}
    return "\n".join([*lines, *(f"{key}: {value:.3g}" for key, value in figures.items())])


def _line(row: Mapping[str, Any]) -> str:
    if "reason" in row:
        return f"{row.get('model')} on {row.get('system')}: {row['reason']}"
    error = "" if row["error"] is None else f", measured {row['measured']:.0f}, {row['error']:+.0%}"
    range_of = f"{row['middle']:.0f} ({row['low']:.0f} to {row['high']:.0f}) tokens/s"
    run = f"{row['model']} on {row['gpus']} {row['system']}, {row['precision']}, {row['container']}"
    return f"{run}: {range_of}{error}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
