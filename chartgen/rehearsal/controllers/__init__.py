"""Job and queue controllers outside of a cluster, with their real webhooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from chartgen.errors import Problem, UsageError, did_you_mean
from chartgen.kube import Object
from chartgen.kube.node_pool import NodePool
from chartgen.programs import Progress
from chartgen.rehearsal import engines
from chartgen.rehearsal.controllers import cloud, devices, kueue, operators
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines

__all__ = ["crds_of", "populated_plane", "start_controllers"]

_START: dict[str, Callable[[ControlPlane], None]] = {
    "cloud-kinds": cloud.start_kinds,
    "cloud-storage": cloud.start_storage,
    "devices": devices.start,
    **{each.name: each.start for each in operators.OPERATORS},
    "kueue": kueue.start,
    "volcano": operators.start_volcano,
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


@contextmanager
def populated_plane(
    pools: Iterable[NodePool],
    controllers: Iterable[str],
    device_classes: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> Iterator[ControlPlane]:
    """Yield a new control plane with simulated machines and controllers, for the time of a `with` block.

    Args:
        controllers: Names for `start_controllers`.
        device_classes: Device classes that Kueue counts, besides the usual ones.
    """
    wanted = tuple(controllers)
    with ControlPlane(device_classes=device_classes, crds=crds_of(wanted), progress=progress) as plane:
        create_machines(plane.cluster, pools, progress=progress)
        start_controllers(plane, wanted, progress=progress)
        yield plane


def crds_of(names: Iterable[str]) -> list[Object]:
    """Return the CRDs of controllers."""
    parts = [part for name in names for part in engines.parts(name) if "crds.json" in engines.engine(part).data]
    return [crd for part in parts for crd in engines.engine_objects(part, "crds.json")]
