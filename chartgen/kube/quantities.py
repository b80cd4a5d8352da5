"""Quantities of the Kubernetes API, such as 8, 500m, 1938410Mi: read, compare and add them without rounding."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

Quantities: TypeAlias = dict[str, Fraction]

# A number with a suffix or with an exponent (apimachinery, pkg/api/resource/quantity.go): 1E is 10^18, and 1E3 is 1000.
_QUANTITY = re.compile(
    r"(?P<number>[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:[eE](?P<exponent>[-+]?[0-9]{1,3})|(?P<suffix>[a-zA-Z]*))"
)
# k8s.io/apimachinery, pkg/api/resource/suffix.go
_SUFFIXES = {
    **{suffix: Fraction(1, 1000**power) for power, suffix in enumerate(["", "m", "u", "n"])},
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
}
# A regular expression of the quantities that are an amount: not below 0.
AMOUNT = rf"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{{1,3}}|{'|'.join(filter(None, _SUFFIXES))})?"


@lru_cache(maxsize=4096)  # the pods of a large cluster repeat a few quantities thousands of times
def read_quantity(text: str | float) -> Fraction:
    """Read a quantity, which YAML may have converted to a number; raise ValueError for another text."""
    match = _QUANTITY.fullmatch(str(text))
    if match is None or (match["suffix"] or "") not in _SUFFIXES:
        raise ValueError(f"{text!r} is not a quantity")
    scale = Fraction(10) ** int(match["exponent"]) if match["exponent"] else _SUFFIXES[match["suffix"]]
    return Fraction(match["number"]) * scale


def read_quantities(table: Mapping[str, Any]) -> Quantities:
    """Read a table of resource -> quantity."""
    return {name: read_quantity(text) for name, text in table.items()}


def add(tables: Iterable[Mapping[str, Fraction]]) -> Quantities:
    """Return the sum of tables, resource by resource."""
    total: Quantities = {}
    for table in tables:
        for name, amount in table.items():
            total[name] = total.get(name, Fraction(0)) + amount
    return total


def amount_text(amount: Fraction, resource: str) -> str:
    """Format an amount of a resource: bytes in Gi or Mi, anything else as a number."""
    if (resource.endswith(("memory", "storage")) or resource.startswith("hugepages-")) and amount:
        unit, name = (2**30, "Gi") if abs(amount) >= 2**30 else (2**20, "Mi")
        return f"{float(amount / unit):.10g}{name}" if amount % unit == 0 else f"{float(amount / unit):.1f}{name}"
    return f"{float(amount):.10g}"
