"""Releases: install, upgrade and uninstall of a chart, through Helm 3 and 4 alike.

Helm never waits for a training run: `--wait` with jobs blocks until the run ends and rolls it back on a time-out
(Helm 4.3, pkg/kube/statuswait.go). Values go to Helm as one merged document on stdin, so that Helm does not
concatenate lists and the process list does not show values.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from chartgen.composer.origin import APPLY, CLIENT_SIDE, annotations_of
from chartgen.errors import ChartgenError, Problem
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import written_chart
from chartgen.helm.program import Helm, HelmError, find_helm
from chartgen.helm.values import to_json
from chartgen.helm.yaml import Plain
from chartgen.releases.history import parse_time
from chartgen.releases.place import Place, check_name

__all__ = ["Place", "Release", "check_name", "install", "uninstall", "upgrade"]

# Refusals of Helm: of an install, then of an upgrade.
_REFUSALS = (
    (
        re.compile(r"cannot re-?use a name"),
        "release {name} already exists",
        "use `chartgen upgrade`, or `chartgen uninstall {name}` first",
    ),
    (
        re.compile(r"release: not found|has no deployed releases"),
        "no release {name} in namespace {namespace}",
        "use `chartgen install`",
    ),
)
_SERVER_SIDE = (4, 0, 0)  # the first Helm that applies server-side


@dataclass(frozen=True)
class Release:
    """One release, from Helm's records.

    Args:
        name: The release's name.
        namespace: Its namespace.
        revision: Number of its last revision, from 1.
        chart: Name and version of its chart, `gke-a3mega-0.1.0`.
        status: Helm's status: deployed, failed, pending-install, pending-upgrade, uninstalling, ...
        updated: Creation time of that revision.
    """

    name: str
    namespace: str
    revision: int
    chart: str
    status: str
    updated: datetime


def install(
    chart: Chart, name: str, values: dict[str, Plain], place: Place = Place(), *, description: str = ""
) -> Release:
    """Install a new release.

    Args:
        description: A note for the release's history; default Helm's own.

    Raises:
        UsageError: The name is not a valid release name.
        ChartgenError: The release exists, or for an upgrade does not, or Helm, the chart or the cluster rejects it.
        MissingToolError: Helm or the cluster is missing.
    """
    return _apply(["install"], chart, name, values, place, description)


def upgrade(
    chart: Chart, name: str, values: dict[str, Plain], place: Place = Place(), *, description: str = ""
) -> Release:
    """Upgrade an existing release to exactly these values; earlier values are not carried over. See `install`."""
    # Without --reset-values Helm takes the last revision's values when the new ones are empty.
    return _apply(["upgrade", "--reset-values"], chart, name, values, place, description)


def _method(action: str, chart: Chart, place: Place) -> list[str]:
    """Return Helm 4's flag for how a chart is applied; upgrades do as the install did."""
    if _helm(place).version < _SERVER_SIDE:
        return []
    if annotations_of(chart).get(APPLY) == CLIENT_SIDE:
        return ["--server-side=false"] if action == "install" else []
    # the API server validates what it applies: Helm need not read all schemas for it, a quarter of its work
    return ["--disable-openapi-validation"]


def uninstall(name: str, place: Place = Place()) -> None:
    """Uninstall an existing release.

    Raises:
        UsageError: The name is not a valid release name.
        ChartgenError: Helm fails.
        MissingToolError: Helm or the cluster is missing.
    """
    check_name(name)
    _helm(place).run(["uninstall", name, "--namespace", place.namespace])


def _apply(
    command: list[str], chart: Chart, name: str, values: dict[str, Plain], place: Place, description: str
) -> Release:
    check_name(name)
    command = [*command, *_method(command[0], chart, place)]
    if description:
        command += ["--description", description]
    with written_chart(chart) as folder:
        arguments = [*command, name, str(folder), "--namespace", place.namespace, "--values", "-", "--output", "json"]
        try:
            record: dict[str, Any] = json.loads(_helm(place).run(arguments, to_json(values)))
        except HelmError as error:
            for pattern, text, hint in _REFUSALS:
                if pattern.search(error.stderr):
                    names = {"name": name, "namespace": place.namespace}
                    raise ChartgenError(Problem(text.format(**names), hint=hint.format(**names))) from None
            raise
    metadata, info = record["chart"]["metadata"], record["info"]
    return Release(
        name=record["name"],
        namespace=record["namespace"],
        revision=int(record["version"]),
        chart=f"{metadata['name']}-{metadata['version']}",
        status=info["status"],
        updated=parse_time(info["last_deployed"]),
    )


def _helm(place: Place) -> Helm:
    return find_helm(place.kubeconfig, place.context)
