"""The compatibility lock: compatible versions, for checks and for fragments that reject other versions."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from chartgen.data import read_table

# A floor as a share of a measured figure: NVIDIA/aicr @ bc05c6b, validators/performance, tolerates a tenth too.
_MARGIN = 0.9
# How an image names its releases, where that is not by year.month.
_TAGS = {"nvidia/nemo-rl": r"v\d+\.\d+\.\d+"}


@lru_cache(maxsize=1)
def lock() -> dict[str, Any]:
    """Return the compatibility lock; chartgen/data/compat.yaml describes its parts.

    Each floor also has `busbw`, the required GB/s, and `basis`, its meaning and source.
    """
    found = read_table("compat.yaml")
    return {**found, "floors": [{**row, **_floor(row)} for row in found["floors"]]}


def _floor(row: dict[str, Any]) -> dict[str, Any]:
    if "threshold" in row:
        return {"busbw": row["threshold"], "basis": f"threshold: {row['source']}"}
    return {
        "busbw": round(row["measured"] * _MARGIN, 1),
        "basis": f"9/10 of {row['measured']} measured: {row['source']}",
    }


def queue_needs(workload: str, *, claims: bool) -> list[str]:
    """Return what Kueue's configuration needs for runs of a chart, whose pods may claim devices; a sentence each."""
    where = "of ConfigMap kueue-manager-config"
    needs = [
        f"{row['of']} {row['from']} and newer let a {row['kind']} pass the queue by unless"
        f" integrations.frameworks {where} lists {row['framework']}."
        for row in lock()["integrations"]
        if row["workload"] == workload
    ]
    return needs + [
        f"{row['of']} {row['from']} and newer count device claims, with Kubernetes {row['kubernetes']} or newer, and"
        f" admit no run with a class that resources.deviceClassMappings {where} does not map."
        for row in lock()["deviceClasses"]
        if claims
    ]


def version(text: str) -> tuple[int, ...]:
    """Return a version as numbers that compare: v1.0.13_1 follows v1.0.13, whatever separates the digits."""
    return tuple(map(int, re.findall(r"\d+", text)))


def within(row: dict[str, str], text: str) -> bool:
    """Report whether a version is in a row's range: `from` is the first version inside, `below` the first after it."""
    after_from = version(text) >= version(row.get("from", ""))
    return after_from and ("below" not in row or version(text) < version(row["below"]))


def release_in(reference: str, image: str) -> str:
    """Return the release of an image, such as 25.07 or v0.6.0; empty when the reference names another image."""
    tag = _TAGS.get(image, r"\d\d\.\d\d")
    release = re.search(rf"(?:^|/){image}:({tag})(?:\D|$)", reference)
    return release[1] if release else ""
