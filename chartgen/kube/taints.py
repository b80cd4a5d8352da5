"""Which taints keep pods off a machine, decided exactly as the scheduler decides it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from chartgen.kube import Object

_KEEPS_OFF = {"NoSchedule", "NoExecute"}  # PreferNoSchedule only makes another machine preferable
_DECIMAL = re.compile(r"0|-?[1-9][0-9]*")


def untolerated(node: Object, tolerations: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the taints of a machine that keep pods with these tolerations off, as kubectl writes them."""
    tolerations = list(tolerations)
    taints = [taint for taint in node["spec"].get("taints") or () if taint["effect"] in _KEEPS_OFF]
    return [show_taint(taint) for taint in taints if not any(tolerates(each, taint) for each in tolerations)]


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Report whether a toleration matches a taint.

    The rules are those of Toleration.ToleratesTaint (kubernetes v1.36, staging/src/k8s.io/api/core/v1/toleration.go). A
    missing key or effect means the same as an empty one, and matches every key or effect, whatever the operator. `Lt`
    and `Gt` exist only where the feature gate TaintTolerationComparisonOperators is on; where it is off, the API
    server refuses pods with them, so a pod that has one is on a cluster that compares.
    """
    for name in ("effect", "key"):
        if toleration.get(name) and toleration[name] != taint.get(name):
            return False
    operator, value, found = toleration.get("operator") or "Equal", toleration.get("value") or "", taint.get("value")
    if operator in {"Lt", "Gt"}:
        return _compares(str(value), operator, str(found or ""))
    return operator == "Exists" or (operator == "Equal" and value == (found or ""))


def show_taint(taint: Mapping[str, Any]) -> str:
    """Write a taint as kubectl does."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _compares(value: str, operator: str, found: str) -> bool:
    """Compare a taint's value with a toleration's; what is not a plain integer of 64 bits matches nothing."""
    if not (_DECIMAL.fullmatch(value) and _DECIMAL.fullmatch(found)):
        return False
    wanted, number = int(value), int(found)
    if not all(-(2**63) <= each < 2**63 for each in (wanted, number)):
        return False
    return number < wanted if operator == "Lt" else number > wanted
