"""Machines that fit a pod: labels that it selects, taints that it tolerates, resources that it requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from chartgen.kube import Object
from chartgen.kube.quantities import Quantities, read_quantities

# Numbers of labels (k8s.io/apimachinery, pkg/labels/selector.go), and of taints, which have no sign + and no zeros.
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"0|-?[1-9][0-9]*")
_KEEPS_OFF = {"NoSchedule", "NoExecute"}  # PreferNoSchedule only makes other machines preferable


def is_selected(node: Object, spec: Mapping[str, Any]) -> bool:
    """Report whether a machine has the labels of a pod's nodeSelector and of its required node affinity."""
    labels = _labels(node)
    selector = spec.get("nodeSelector") or {}
    terms = _terms(spec)
    named = all(labels.get(key) == value for key, value in selector.items())
    return named and (not terms or any(_meets_term(node, term) for term in terms))


def is_matched(item: Object, selector: Mapping[str, Any] | None) -> bool:
    """Report whether an object matches a label selector; None matches nothing, an empty selector everything."""
    if selector is None:
        return False
    labels = _labels(item)
    named = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return named and all(_meets(labels, rule) for rule in selector.get("matchExpressions", ()))


def wanted_labels(spec: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return each label that a pod requires: readable text -> the rule as in node affinity."""
    selector = (spec.get("nodeSelector") or {}).items()
    named = [{"key": key, "operator": "In", "values": [value]} for key, value in selector]
    rules = [rule for term in _terms(spec) for rule in term.get("matchExpressions", ())]
    return {_show_rule(rule): rule for rule in [*named, *rules]}


def has_label(node: Object, rule: Mapping[str, Any]) -> bool:
    """Report whether a machine meets one rule of `wanted_labels`."""
    return _meets(_labels(node), rule)


def why_unusable(node: Object) -> str:
    """Return why the scheduler excludes a machine; empty when it does not."""
    if node["spec"].get("unschedulable"):
        return "is cordoned"
    conditions = node.get("status", {}).get("conditions", ())
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    return "" if ready else "is not Ready"


def offers(node: Object) -> Quantities:
    """Return the resources that a machine offers to pods."""
    return read_quantities(node.get("status", {}).get("allocatable", {}))


def room(offered: Quantities, requests: Quantities) -> int:
    """Return how many pods with these requests fit; one when they request nothing."""
    return max(0, min((int(offered.get(name, 0) // amount) for name, amount in requests.items()), default=1))


def _labels(node: Object) -> dict[str, str]:
    return node["metadata"].get("labels") or {}


def _terms(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    found: list[dict[str, Any]] = required.get("nodeSelectorTerms", [])
    return found


def _meets_term(node: Object, term: Mapping[str, Any]) -> bool:
    """Report whether a machine matches a term; an empty term matches nothing (core/v1, NodeSelectorTerm)."""
    if not term.get("matchExpressions") and not term.get("matchFields"):
        return False
    labels, name = _labels(node), {"metadata.name": node["metadata"]["name"]}
    by_label = all(_meets(labels, rule) for rule in term.get("matchExpressions", ()))
    return by_label and all(_meets(name, rule) for rule in term.get("matchFields", ()))


def _meets(labels: Mapping[str, str], rule: Mapping[str, Any]) -> bool:
    found, values, operator = labels.get(rule["key"]), rule.get("values", []), rule["operator"]
    if operator in {"Gt", "Lt"}:
        return _compares(found or "", operator, values[0], _INTEGER)
    answers = {
        "In": found in values,
        "NotIn": found not in values,
        "Exists": found is not None,
        "DoesNotExist": found is None,
    }
    return answers[operator]


def _compares(found: str, operator: str, limit: str, form: re.Pattern[str]) -> bool:
    """Report whether a number is above (`Gt`) or below a limit; anything but 64-bit integers matches nothing."""
    if not (form.fullmatch(found) and form.fullmatch(limit)):
        return False
    number, bound = int(found), int(limit)
    if not all(-(2**63) <= each < 2**63 for each in (number, bound)):
        return False
    return number > bound if operator == "Gt" else number < bound


def _show_rule(rule: Mapping[str, Any]) -> str:
    values = rule.get("values", [])
    if rule["operator"] == "In" and len(values) == 1:
        return f"{rule['key']}={values[0]}"
    return f"{rule['key']} {rule['operator']}" + (f" {', '.join(values)}" if values else "")


def untolerated(node: Object, tolerations: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the taints of a machine that exclude pods with these tolerations, as kubectl writes them."""
    tolerations = list(tolerations)
    taints = [taint for taint in node["spec"].get("taints") or () if taint["effect"] in _KEEPS_OFF]
    return [show_taint(taint) for taint in taints if not any(tolerates(each, taint) for each in tolerations)]


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Report whether a toleration matches a taint.

    The rules are those of Toleration.ToleratesTaint (kubernetes v1.36, staging/src/k8s.io/api/core/v1/toleration.go). A
    missing key or effect equals an empty one, and matches every key or effect, whatever the operator. `Lt` and `Gt`
    need the feature gate TaintTolerationComparisonOperators; without it, the API server rejects pods with them, so a
    pod that has one is on a cluster that compares.
    """
    for name in ("effect", "key"):
        if toleration.get(name) and toleration[name] != taint.get(name):
            return False
    operator, value, found = toleration.get("operator") or "Equal", toleration.get("value") or "", taint.get("value")
    if operator in {"Lt", "Gt"}:
        return _compares(str(found or ""), operator, str(value), _DECIMAL)
    return operator == "Exists" or (operator == "Equal" and value == (found or ""))


def show_taint(taint: Mapping[str, Any]) -> str:
    """Format a taint as kubectl does."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"
