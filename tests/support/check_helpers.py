"""What a tuple of checks says of a job: a target's chart with these values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import gcd
from pathlib import Path
from typing import NamedTuple

from pairs import TARGETS, presets_of
from rendered import VALUES, chart, target

from chartgen.checks import check_values, effective_values
from chartgen.checks.job import Job
from chartgen.checks.rules import judge as judge_rules
from chartgen.findings import Rule
from chartgen.helm.values import Values, load_values


class Said(NamedTuple):
    """One claim with the id and the severity of its check."""

    id: str
    key: str
    message: str
    hint: str
    severity: str


def job(name: str, *sets: str, json: Sequence[str] = (), files: Sequence[Path] = ()) -> Job:
    """A job on a target from values files, `--set` and `--set-json` flags; quantities and variables are text."""
    texts = [flag for flag in sets if flag.startswith("env.") or ".resources." in flag]
    others = [flag for flag in sets if flag not in texts]
    return job_of(name, load_values(files, set_values=others, set_strings=texts, set_json=json))


def job_of(name: str, values: Values) -> Job:
    """A job on a target with these values, which fit the schema: no check sees others."""
    assert check_values(chart(name=name), values) == []
    return Job(effective_values(chart(name=name), values), target(name))


def judge(checks: Sequence[Rule], judged: Job) -> list[Said]:
    """Everything that these checks and all rules of rules.yaml say of a job."""
    return list(_said(checks, judged))


def _said(checks: Sequence[Rule], judged: Job) -> Iterator[Said]:
    for check in checks:
        if judged.launcher.task in check.tasks:
            for claim in check.function(judged):
                yield Said(check.id, claim.key, claim.message, claim.hint or check.hint, check.severity)
    for rule, claim in judge_rules(judged):
        yield Said(rule.id, claim.key, claim.message, claim.hint, rule.severity)


@cache
def published() -> tuple[tuple[str, str, Job], ...]:
    """Every preset to try on every target, with overlay and example site as users layer them; and no values at all.

    Users add the image of the MLPerf benchmark, and the machines of a model that has no overlay for the target.
    """
    return tuple(_published())


def _published() -> Iterator[tuple[str, str, Job]]:
    for name in TARGETS:
        yield name, "defaults", job(name)
        for preset in (VALUES / f"{each}.yaml" for each in presets_of(name)):
            overlay, site = VALUES / name / preset.name, VALUES / f"site.{name}.example.yaml"
            files, mlperf = [preset, *([overlay] if overlay.is_file() else []), site], preset.stem == "llama2-70b-lora"
            sets = ["launchers.mlperf-llama2-lora.image=example.com/lora:1"] if mlperf else []
            if not overlay.is_file():
                alone = job(name, files=files)
                sets.append(f"nodes={alone.model_parallel // gcd(alone.model_parallel, alone.gpus_per_node)}")
            yield name, preset.stem, job(name, *sets, files=files)
            # the overlay cuts runs of Megatron, and the benchmark has no result before its end
            if not mlperf and preset.stem != "fsdp":
                yield name, f"{preset.stem}+benchmark", job(name, *sets, files=[*files, VALUES / "benchmark.yaml"])
