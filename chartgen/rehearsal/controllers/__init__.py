"""Job and queue controllers outside of a cluster, with their real webhooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from chartgen.errors import Problem, UsageError, did_you_mean
from chartgen.kube import Object
from chartgen.programs import Progress
from chartgen.rehearsal import engines
from chartgen.rehearsal.controllers import cloud, devices, kueue, operators, volcano
from chartgen.rehearsal.controlplane import ControlPlane

__all__ = ["crds_of", "start_controllers"]

_START: dict[str, Callable[[ControlPlane], None]] = {
    "cloud-kinds": cloud.start_kinds,
    "cloud-storage": cloud.start_storage,
    "devices": devices.start,
    **{each.name: each.start for each in operators.OPERATORS},
    "kueue": kueue.start,
    "volcano": volcano.start,
}


def start_controllers(plane: ControlPlane, names: Iterable[str], *, progress: Progress | None = None) -> None:
    """Start controllers and wait until their webhooks answer.

    Args:
        names: Any of `jobset`, `kueue`, `volcano`, `training-operator`, `mpi-operator`, `trainer`, `kuberay`,
            `cloud-kinds`, `cloud-storage` and `devices`.

    Raises:
        UsageError: A name is unknown.
        MissingToolError: A controller is not built, or does not become ready.
    """
    wanted = set(names)
    for name in sorted(wanted - set(_START)):
        raise UsageError(Problem(f"unknown controller {name!r}", hint=did_you_mean(name, _START)))
    plane.add_crds(crds_of(wanted))  # before any controller starts, which reads them at its start
    for name, start in _START.items():
        if name in wanted:
            if progress:
                progress(f"starting {name}")
            start(plane)


def crds_of(names: Iterable[str]) -> list[Object]:
    """Return the CRDs of controllers."""
    parts = [part for name in names for part in engines.parts(name) if "crds.json" in engines.engine(part).data]
    return [crd for part in parts for crd in engines.engine_objects(part, "crds.json")]
