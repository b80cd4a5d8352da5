"""Third-party values files: keys that no template reads, and secrets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chartgen.checks.secrets import looks_secret
from chartgen.checks.yaml_pitfalls import pitfalls
from chartgen.errors import Problem
from chartgen.findings import Finding, PartProblem, Rule, in_order
from chartgen.helm.yaml import Document, require_map
from chartgen.kube.manifest_walk import maps


def dead_key_of_brackets(data: dict[str, Any]) -> Iterator[PartProblem]:
    """A key that ends in `[]` is literal: templates range over the name without the brackets, and find nothing."""
    for at, node in maps(data):
        for key in node:
            if key.endswith("[]"):
                message = f"{key} is read by no template"
                yield PartProblem(message, f"write {key[:-2]} and a list below it", (*at, key))


def no_secrets_in_handwritten_values(data: dict[str, Any]) -> Iterator[PartProblem]:
    """Keys, tokens and passwords belong in a Secret: values are stored in the release, and many tools show them."""
    for at, node in maps(data):
        for key, value in node.items():
            name = str(node.get("name", key)) if key == "value" else key
            if isinstance(value, str) and (looks_secret(name, value) or looks_secret(name.upper(), value)):
                yield PartProblem(f"{name} contains a secret", at=(*at, key))


HANDWRITTEN = (
    Rule.of(
        dead_key_of_brackets,
        "AI-Hypercomputer/gpu-recipes @ 2e1fd5e, 129 values files with `subnetworks[]`",
        remedy="write … and a list below it",
    ),
    Rule.of(
        no_secrets_in_handwritten_values,
        "kubernetes.io, Good practices for Kubernetes Secrets",
        remedy="put it into a Secret, and refer to it",
    ),
)


def lint_values(document: Document) -> list[Finding]:
    """Check a values file without its chart; raise ChartgenError if it does not contain a map."""
    data: dict[str, Any] = dict(require_map(document, "a values file"))
    found = pitfalls(document)
    for rule in HANDWRITTEN:
        for complaint in rule.function(data):
            hint = f"{complaint.hint or rule.hint} ({rule.source})"
            problem = Problem(complaint.message, document.path, *document.position(complaint.at), hint)
            found.append(Finding(rule.id, problem, rule.severity, ".".join(map(str, complaint.at))))
    return in_order(found)
