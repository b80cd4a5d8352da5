"""Public images: their release, and the features of their Megatron, by the lock in data/compat.yaml."""

from __future__ import annotations

import re

from chartgen.checks.job import Job
from chartgen.data.compatibility import lock, version

# How an image names its releases, where that is not by year.month.
_TAGS = {"nvidia/nemo-rl": r"v\d+\.\d+\.\d+"}


def release_of(job: Job, image: str) -> str:
    """Return the release of a job's image; empty for another image, or with the user's own program.

    Args:
        image: The image's name without its registry, such as nvidia/nemo.
    """
    if job.values["launchers"][job.launcher.name].get("program"):
        return ""
    return release_in(job.image, image)


def release_in(reference: str, image: str) -> str:
    """Return the release of an image, such as 25.07 or v0.6.0; empty when the reference names another image."""
    tag = _TAGS.get(image, r"\d\d\.\d\d")
    release = re.search(rf"(?:^|/){image}:({tag})(?:\D|$)", reference)
    return release[1] if release else ""


def can(job: Job, feature: str) -> bool | None:
    """Report whether the image's Megatron is new enough for a feature of the lock; None if that is unknown."""
    (row,) = (row for row in lock()["features"] if row["feature"] == feature)
    release = release_of(job, row["image"])
    return version(release) >= version(row["from"]) if release else None
