"""The command that installs or upgrades a target's setup chart for this release."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

from chartgen.checks import effective_values
from chartgen.checks.job import value_at
from chartgen.checks.secrets import looks_secret
from chartgen.composer.origin import origin_of
from chartgen.helm.chart import Chart
from chartgen.helm.values import Layer, Values
from chartgen.helm.yaml import dotted
from chartgen.releases.history import RevisionRecord, read_records
from chartgen.releases.preflight.context import PreflightContext, read_if_allowed

RELEASE = "setup"
_NOT_ITS = {"env", "secretEnv"}  # concern only the run, and may contain a secret by mistake
_QUEUES = {"ClusterQueue", "LocalQueue", "Queue"}


def setup_step(context: PreflightContext, *, has_cluster_half: bool = False) -> str:
    """Return the step that installs or upgrades the target's setup chart.

    It uses the values of the run, so that the quota covers its machines and every resource of its pods.

    Args:
        has_cluster_half: Whether the cluster-scoped objects exist, as for a second team: they belong to another
            release, and Helm would refuse to create them again.
    """
    if context.chart is None or context.values is None:
        return "install the setup chart of your target: helm install setup charts/TARGET-setup -f site.yaml"
    name = origin_of(context.chart).name or "TARGET"
    words = [
        "helm",
        *_verb(context),
        f"charts/{name}-setup",
        "--namespace",
        context.namespace,
        *_values(context.chart, context.values),
    ]
    if has_cluster_half:
        words += ["--set", "setup.cluster=false"]
    return f"install the setup chart: {shlex.join(words)}"


def other_queues(context: PreflightContext) -> list[str]:
    """Return the queues of the existing setup release; an upgrade with another queue would delete them."""
    records = _records(context)
    objects = records[-1].objects if records else []
    return sorted({item["metadata"]["name"] for item in objects if item["kind"] in _QUEUES})


def _verb(context: PreflightContext) -> list[str]:
    if _records(context):
        return ["upgrade", RELEASE, "--reuse-values"]
    return ["install", RELEASE]


def _records(context: PreflightContext) -> list[RevisionRecord]:
    """Return the revisions of the setup release; empty without the permission to read them."""

    def read() -> list[RevisionRecord] | None:
        return read_if_allowed(lambda: read_records(context.cluster, RELEASE, context.namespace))

    return context.once("setup release", read) or []


def _values(chart: Chart, values: Values) -> Iterator[str]:
    for layer in values.layers:
        yield from ["-f", str(layer.source)] if layer.document else _flags(layer, values.data)
    effective: dict[str, Any] = effective_values(chart, values)
    nodes, quota = effective.get("nodes"), ((effective.get("setup") or {}).get("quota") or {}).get("nodes")
    machines = nodes + (value_at(effective, "run.spares") or 0) if isinstance(nodes, int) else 0
    if (quota or nodes or 0) < machines:  # a spare that was chosen is in no file
        yield from ("--set", f"setup.quota.nodes={machines}")


def _flags(layer: Layer, data: dict[str, Any]) -> Iterator[str]:
    """Yield the final values of a flag; a list as a whole."""
    for keys in layer.assigned:
        value: Any = data
        path = []
        for key in keys:
            if not isinstance(value, dict) or key not in value:
                break
            value = value[key]
            path.append(key)
        text = json.dumps(value)
        if path and path[0] not in _NOT_ITS and not looks_secret(str(path[-1]), text):
            plain = isinstance(value, (bool, int)) or value is None
            yield from ("--set" if plain else "--set-json", f"{dotted(path)}={text}")
