"""The options that users give a launcher's program itself: `config` and `args`, by one name for all programs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

from chartgen.checks.job import Job


def options(job: Job) -> Iterator[tuple[str, Any]]:
    """Return the program's own options by their last name, with underscores: from `config`, then from `args`.

    An option without a value counts as True, and a part of a tree too when anything is in it.
    """
    own = job.values["launchers"][job.launcher.name]
    yield from _leaves(own.get("config") or {})
    for text, following in pairwise([*map(str, own.get("args") or ()), "--"]):
        name, given, value = text.lstrip("-+").partition("=")
        apart = text.startswith("--") and not following.startswith("-")
        yield _plain(name), value if given else following if apart else True


def _leaves(tree: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield _plain(name), True
            yield from _leaves(value)
        else:
            yield _plain(name), value


@lru_cache(maxsize=1024)
def _plain(name: str) -> str:
    return name.rpartition(".")[2].replace("-", "_").lower()
