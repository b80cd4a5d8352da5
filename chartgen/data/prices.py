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
    row = _prices().get(machine)
    return ListPrice(float(row["price"]), str(row["date"]), row["source"]) if row else None


@lru_cache(maxsize=1)
def _prices() -> dict[str, Any]:
    rows: Any = require_map(load_file(_FILE), _FILE.name)["prices"]
    return dict(rows)
