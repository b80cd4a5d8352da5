"""Which cases `make test` runs, and which `make test-all` adds: other targets, Helm 3, guides, more seeds."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

# Charts must work with both; what they do differently has tests of its own.
HELMS = ["helm", pytest.param("helm3", marks=pytest.mark.full)]


def cases(every: Iterable[Any], chosen: Collection[Any]) -> list[Any]:
    """Return parameters of a test: `make test` runs the chosen ones, `make test-all` the others."""
    return [each if each in chosen else pytest.param(each, marks=pytest.mark.full) for each in every]
