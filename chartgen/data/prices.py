"""List prices of machines, from data/prices.yaml, with the source and month of each."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from chartgen.helm.yaml import load_file, require_map

_FILE = Path(__file__).parent / "prices.yaml"


class ListPrice(NamedTuple):
    """A list price.

    Args:
        price: US dollars of one GPU for an hour, on demand.
        date: Year and month.
    """

    price: float
    date: str
    source: str


def list_price(machine: str) -> ListPrice | None:
    """Return the list price of a machine type's GPU; None where no public page is known."""
    row = _table()["prices"].get(machine)
    return ListPrice(float(row["price"]), str(row["date"]), row["source"]) if row else None


def why_unpriced(machine: str) -> str:
    """Return why a machine type has no list price; empty where it has one, or is not listed."""
    return next((reason for reason, machines in _table()["unpriced"].items() if machine in machines), "")


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    return require_map(load_file(_FILE), _FILE.name)
