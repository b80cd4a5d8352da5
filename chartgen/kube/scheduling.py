"""Which machines a pod may be placed on: labels that it selects, room that it needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chartgen.kube import Object
from chartgen.kube.quantities import Quantities, read_all

_INTEGER = re.compile(r"[+-]?[0-9]+")


def is_selected(node: Object, spec: Mapping[str, Any]) -> bool:
    """Report whether a machine has the labels of a pod's nodeSelector and of its required node affinity."""
    labels = _labels(node)
    selector = spec.get("nodeSelector") or {}
    terms = _terms(spec)
    named = all(labels.get(key) == value for key, value in selector.items())
    return named and (not terms or any(_meets_term(node, term) for term in terms))


def is_matched(item: Object, selector: Mapping[str, Any] | None) -> bool:
    """Report whether an object has the labels of a label selector; none at all matches nothing, an empty one all."""
    if selector is None:
        return False
    labels = _labels(item)
    named = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return named and all(_meets(labels, rule) for rule in selector.get("matchExpressions", ()))


def wanted_labels(spec: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return each label that a pod asks for: as people read it -> the rule, as node affinity writes it."""
    selector = (spec.get("nodeSelector") or {}).items()
    named = [{"key": key, "operator": "In", "values": [value]} for key, value in selector]
    rules = [rule for term in _terms(spec) for rule in term.get("matchExpressions", ())]
    return {_show_rule(rule): rule for rule in [*named, *rules]}


def has_label(node: Object, rule: Mapping[str, Any]) -> bool:
    """Report whether a machine meets one rule of `wanted_labels`."""
    return _meets(_labels(node), rule)


def why_unusable(node: Object) -> str:
    """Say why the scheduler leaves a machine out; empty when it does not."""
    if node["spec"].get("unschedulable"):
        return "is cordoned"
    conditions = node.get("status", {}).get("conditions", ())
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return "" if ready else "is not Ready"


def offers(node: Object) -> Quantities:
    """Return what a machine offers to pods."""
    return read_all(node.get("status", {}).get("allocatable", {}))


def room(offered: Quantities, requests: Quantities) -> int:
    """Count the pods with these requests that fit into what is offered; one when they ask for nothing."""
    return max(0, min((int(offered.get(name, 0) // amount) for name, amount in requests.items()), default=1))


def _labels(node: Object) -> dict[str, str]:
    return node["metadata"].get("labels") or {}


def _terms(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    found: list[dict[str, Any]] = required.get("nodeSelectorTerms", [])
    return found


def _meets_term(node: Object, term: Mapping[str, Any]) -> bool:
    """Report whether a machine meets a term; an empty one matches nothing (core/v1, NodeSelectorTerm)."""
    if not term.get("matchExpressions") and not term.get("matchFields"):
        return False
    labels, name = _labels(node), {"metadata.name": node["metadata"]["name"]}
    by_label = all(_meets(labels, rule) for rule in term.get("matchExpressions", ()))
    return by_label and all(_meets(name, rule) for rule in term.get("matchFields", ()))


def _meets(labels: Mapping[str, str], rule: Mapping[str, Any]) -> bool:
    found, values, operator = labels.get(rule["key"]), rule.get("values", []), rule["operator"]
    if operator in {"Gt", "Lt"}:
        number, limit = _integer(found), _integer(values[0])
        if number is None or limit is None:
            return False
        return number > limit if operator == "Gt" else number < limit
    answers = {
        "In": found in values,
        "NotIn": found not in values,
        "Exists": found is not None,
        "DoesNotExist": found is None,
    }
    return answers[operator]


def _integer(text: str | None) -> int | None:
    """Return an integer of 64 bits, else None, which matches nothing (k8s.io/apimachinery, pkg/labels/selector.go)."""
    number = int(text) if text and _INTEGER.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _show_rule(rule: Mapping[str, Any]) -> str:
    values = rule.get("values", [])
    if rule["operator"] == "In" and len(values) == 1:
        return f"{rule['key']}={values[0]}"
    return f"{rule['key']} {rule['operator']}" + (f" {', '.join(values)}" if values else "")
