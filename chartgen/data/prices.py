"""List prices of machines, from data/prices.yaml, with the source and month of each."""

from __future__ import annotations

from typing import NamedTuple

from chartgen.data import read_table


class ListPrice(NamedTuple):
    """A list price."""

    price: float  # US dollars of one GPU for an hour, on demand
    date: str  # year and month
    source: str


def list_price(machine: str) -> ListPrice | None:
    """Return the list price of a machine type's GPU; None where no public page is known."""
    row = read_table("prices.yaml")["prices"].get(machine)
    return ListPrice(float(row["price"]), str(row["date"]), row["source"]) if row else None


def why_unpriced(machine: str) -> str:
    """Return why a machine type has no list price; empty where it has one, or is not listed."""
    return next(
        (reason for reason, machines in read_table("prices.yaml")["unpriced"].items() if machine in machines), ""
    )
