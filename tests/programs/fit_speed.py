"""Fit the constants of chartgen/data/speed.yaml: python tests/programs/fit_speed.py ROWS.json [--write].

The constants explain the measured runs best and are near to what is usual: the maximum of their likelihood and of a
prior (`usual`, `strict`), found by Gauss and Newton's method on logarithms, in which a run that is far off counts less
(Huber). Rows that repeat a run in several containers count less each. Then it leaves out each model, each GPU and the
newest container in turn and prints the errors of those; the ranges of what was not measured come from them.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from judge_speed import quantile, run_of

from chartgen.estimator import Run
from chartgen.estimator.estimate import SPEED_FILE, fitted_constants, kind_of, months_of, speed_table, width
from chartgen.estimator.step import step_of

_STEP = 1e-4  # of a logarithm, for derivatives
_ROUNDS = 12
_COVERED = 0.8


class Sample(NamedTuple):
    """A measured run."""

    row: Mapping[str, Any]  # the row
    run: Run  # the run
    speed: float  # logarithm of the measured tokens/s of a GPU
    weight: float  # how much it counts: less where others repeat it


def samples(rows: Iterable[Mapping[str, Any]]) -> list[Sample]:
    """Return the rows that describe a run and its speed."""
    found = [(row, run) for row in rows if row.get("tokensPerSecondPerGpu") and isinstance(run := run_of(row), Run)]
    alike = Counter(map(_kind, (run for _, run in found)))
    return [Sample(row, run, math.log(row["tokensPerSecondPerGpu"]), alike[_kind(run)] ** -0.25) for row, run in found]


def _kind(run: Run) -> tuple[Any, ...]:
    return run.model.name, run.hardware.gpu, run.precision, run.drops


def error_of(sample: Sample, constants: Mapping[str, float]) -> float:
    """Return the logarithm of the predicted speed by the measured one."""
    run = sample.run
    tokens = run.global_batch * run.sequence / run.gpus
    return math.log(tokens / step_of(run, constants).seconds) - sample.speed


def fit(chosen: Sequence[Sample], start: Mapping[str, float] | None = None, rounds: int = _ROUNDS) -> dict[str, float]:
    """Return the constants that explain runs best."""
    priors, noise = speed_table()["constants"], speed_table()["noise"]
    names = list(priors)
    usual = [math.log(priors[name]["usual"]) for name in names]
    place = [math.log((start or {name: row["usual"] for name, row in priors.items()})[name]) for name in names]
    stiff = [priors[name]["strict"] ** -2 for name in names]
    for _ in range(rounds):
        constants = dict(zip(names, map(math.exp, place), strict=True))
        errors = [error_of(sample, constants) for sample in chosen]
        slopes = [_slopes(sample, error, constants, names) for sample, error in zip(chosen, errors, strict=True)]
        weights = [
            (s.weight / noise) ** 2 / math.hypot(1, s.weight * e / noise) for s, e in zip(chosen, errors, strict=True)
        ]
        matrix = [
            [sum(w * d[i] * d[j] for w, d in zip(weights, slopes, strict=True)) for j in range(len(names))]
            for i in range(len(names))
        ]
        vector = [
            -sum(w * e * d[i] for w, e, d in zip(weights, errors, slopes, strict=True)) for i in range(len(names))
        ]
        for i, strictness in enumerate(stiff):
            matrix[i][i] += strictness
            vector[i] -= strictness * (place[i] - usual[i])
        move = solve(matrix, vector)
        place = [at + max(min(by, 0.5), -0.5) for at, by in zip(place, move, strict=True)]
        if max(map(abs, move)) < 1e-3:
            break
    return dict(zip(names, map(math.exp, place), strict=True))


def _slopes(sample: Sample, error: float, constants: Mapping[str, float], names: Sequence[str]) -> list[float]:
    longer = math.exp(_STEP)
    return [(error_of(sample, {**constants, name: constants[name] * longer}) - error) / _STEP for name in names]


def solve(matrix: list[list[float]], vector: list[float]) -> list[float]:
    """Solve a positive definite system by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, vector, strict=True)]
    for i, pivot in enumerate(rows):
        for row in rows[i + 1 :]:
            factor = row[i] / pivot[i]
            row[i:] = [value - factor * other for value, other in zip(row[i:], pivot[i:], strict=True)]
    result: list[float] = []
    for i in range(len(rows) - 1, -1, -1):
        known = sum(a * b for a, b in zip(rows[i][i + 1 : -1], result, strict=True))
        result.insert(0, (rows[i][-1] - known) / rows[i][i])
    return result


def left_out(chosen: Sequence[Sample], key: str, start: Mapping[str, float]) -> list[tuple[Sample, float]]:
    """Return the errors of runs by constants that were fitted without their model, GPU or newest container."""
    found = []
    groups = {_group(sample, key) for sample in chosen} - {""}
    for group in sorted(groups):
        constants = fit([sample for sample in chosen if _group(sample, key) != group], start, 4)
        found += [(s, error_of(s, constants)) for s in chosen if _group(s, key) == group]
    return found


def _group(sample: Sample, key: str) -> str:
    newest = months_of(speed_table()["measured"]["software"][1]) or math.inf
    # both releases of the newest container
    recent = sample.run.software >= math.floor(newest)
    return {"model": sample.run.model.name, "gpu": sample.run.hardware.gpu, "software": "newest" if recent else ""}[key]


def _show(what: str, found: Iterable[tuple[Sample, float]]) -> None:
    sizes = sorted(abs(math.expm1(error)) for _, error in found)
    sys.stdout.write(f"{what}: {len(sizes)} rows, median {quantile(sizes, 0.5):.1%}, p90 {quantile(sizes, 0.9):.1%}\n")


def covered(found: Iterable[tuple[Sample, float]], *foreign: str) -> dict[str, float]:
    """Return the share of rows that are within their ranges: of each model, of each GPU, and of all.

    Args:
        foreign: What was left out of the fit, by its key in `spread`.
    """
    within: dict[str, list[bool]] = {}
    for sample, error in found:
        for group in (sample.run.model.name, sample.run.hardware.gpu, "all"):
            within.setdefault(group, []).append(abs(error) <= width(sample.run, foreign))
    return {group: sum(rows) / len(rows) for group, rows in within.items()}


def _beyond(found: Iterable[tuple[Sample, float]], known: Mapping[str, float]) -> float:
    """Return what a range needs in addition, so that it covers runs of which something was not measured."""
    extra = sorted(math.copysign(abs(e * e - (k := known[kind_of(s.run)]) ** 2) ** 0.5, abs(e) - k) for s, e in found)
    return max(quantile(extra, _COVERED) or 0.0, 0.0)


def _written(text: str, constants: Mapping[str, float], spread: Mapping[str, float], chosen: Sequence[Sample]) -> str:
    for name, value in constants.items():
        text = re.sub(rf"(?m)^(  {name}: \{{value: )[^,]+", rf"\g<1>{value:.3g}", text)
    for name, value in spread.items():
        text = re.sub(rf"(?m)^(spread: .*\b{name}: )[0-9.]+", rf"\g<1>{value:.3f}", text)
    measured = {
        "models": {sample.run.model.name for sample in chosen},
        "gpus": {sample.run.hardware.gpu for sample in chosen},
        "precisions": {sample.run.precision for sample in chosen},
    }
    for name, found in measured.items():
        text = re.sub(rf"(?m)^(  {name}: )\[.*\]$", rf"\g<1>[{', '.join(sorted(found))}]", text)
    return text


def main(arguments: Sequence[str]) -> int:
    """Fit, print the errors, and write the constants."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--write", action="store_true", help="write them into chartgen/data/speed.yaml")
    options = parser.parse_args(arguments)
    rows = json.loads(options.rows.read_text())
    chosen = samples(rows)
    constants = {name: float(f"{value:.3g}") for name, value in fit(chosen, fitted_constants()).items()}
    own = [(sample, error_of(sample, constants)) for sample in chosen]
    _show("fitted", own)
    kinds = sorted({kind_of(sample.run) for sample in chosen})
    spread = {
        kind: quantile(sorted(abs(e) for s, e in own if kind_of(s.run) == kind), _COVERED) or 0.1 for kind in kinds
    }
    rows = [covered(own)]
    for key in ("model", "gpu", "software"):
        found = left_out(chosen, key, constants)
        spread[key] = _beyond(found, spread)
        _show(f"without its {key}", found)
        rows.append(covered(found, key))
    sys.stdout.write(f"{'within the ranges':18} fitted  without its model, gpu, software\n")
    for group in sorted(rows[0]):
        shares = (f"{row[group]:6.0%}" if group in row else "     -" for row in rows)
        sys.stdout.write(f"{group:18} {' '.join(shares)}\n")
    if options.write:
        SPEED_FILE.write_text(_written(SPEED_FILE.read_text(), constants, spread, chosen))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
