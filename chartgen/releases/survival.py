"""What of a run outlives its pods: whether it saves checkpoints, and whether what holds them stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chartgen.helm.values import coalesce
from chartgen.kube.workers import find_workers

if TYPE_CHECKING:
    from chartgen.kube.workers import Workers
    from chartgen.releases.history import Record

# Variables of the program's container that name what it writes.
_CHECKPOINTS, _LOGS = "CHECKPOINT_DIRECTORY", "RUN_DIRECTORY"
# Volumes that end with their pod (kubernetes, api/core/v1/types.go), and those that hold nothing that a pod writes.
_PASSING = {"emptyDir", "ephemeral"}
_READ_ONLY = {"configMap", "secret", "projected", "downwardAPI", "image"}
_BUCKETS = "gcsfuse.csi.storage.gke.io"  # inline volumes of other drivers may end with the pod


@dataclass(frozen=True)
class Store:
    """What holds a directory of a program.

    Args:
        directory: The directory; empty when the program has none.
        where: What holds it, in words.
        stays: "yes"; "no" when it ends with the pod; "machine" when only that machine has it; "unknown".
    """

    directory: str = ""
    where: str = ""
    stays: str = "unknown"


@dataclass(frozen=True)
class Survival:
    """What of a run outlives its pods.

    Args:
        trains: Whether it trains, so that there are steps to lose.
        saves: "yes" or "no", as its values say; "unknown" for a chart that chartgen does not know.
        interval: Steps between two checkpoints; 0 = not known.
        checkpoints: Where they are.
        logs: Where its logs are.
    """

    trains: bool
    saves: str
    interval: int
    checkpoints: Store
    logs: Store

    @property
    def is_safe(self) -> bool:
        """Whether nobody needs to be asked: no steps, or checkpoints that stay, or a chart of which nothing is known.

        A directory for checkpoints that ends with the pod loses whatever an unknown chart saves there.
        """
        return not self.trains or (self.saves != "no" and self.checkpoints.stays in ("yes", "unknown"))

    @property
    def risk(self) -> str:
        """Why steps are lost with the pods, or what is not known about that; empty when all is well."""
        held = self.checkpoints
        if not self.trains:
            return ""
        if self.saves == "no":
            return "it saves no checkpoints (checkpoint.enabled is false)"
        if held.stays == "no":
            return f"checkpoints in {held.directory} end with its pods ({held.where})"
        if held.stays == "machine":
            return f"checkpoints in {held.directory} are on {held.where}, which other machines do not have"
        unknown = [text for text in (_unknown_chart(self), _unknown_store(held)) if text]
        return " and ".join(unknown)


def survival(workers: Workers, values: Mapping[str, Any]) -> Survival:
    """Work out what of a run outlives its pods.

    Args:
        workers: The run's pods, rendered or live.
        values: The values that its templates saw, the chart's defaults included; of a chart that chartgen does not
            know, any.
    """
    checkpoint = values.get("checkpoint")
    known = "launcher" in values and isinstance(checkpoint, Mapping) and isinstance(checkpoint.get("enabled"), bool)
    return Survival(
        trains=workers.trains,
        saves=("yes" if values["checkpoint"]["enabled"] else "no") if known else "unknown",
        interval=int(values["checkpoint"].get("interval") or 0) if known else 0,
        checkpoints=_store(workers, _CHECKPOINTS),
        logs=_store(workers, _LOGS),
    )


def survival_of(record: Record) -> Survival | None:
    """Work out what outlives the pods of a revision's run; None when it runs nothing."""
    workers = find_workers(record.objects)
    return survival(workers, values_of(record)) if workers else None


def values_of(record: Record) -> dict[str, Any]:
    """Return the values that the templates of a revision saw."""
    return coalesce(record.content.get("values") or {}, record.values)


def _store(workers: Workers, variable: str) -> Store:
    directory = workers.env.get(variable, "")
    if not directory:
        return Store()
    return Store(directory, *_fate(workers.volume(directory)))


def _fate(volume: Mapping[str, Any]) -> tuple[str, str]:
    """Say what a volume is, and whether it stays when its pods end."""
    kind = next((key for key in volume if key != "name"), "")
    source = volume.get(kind) or {}
    if kind in _PASSING or kind in _READ_ONLY:
        return "the machine's memory" if source.get("medium") == "Memory" else f"a volume of type {kind}", "no"
    known = {
        "": ("the container's own file system", "no"),
        "hostPath": (f"the machine's own disk, {source.get('path')}", "machine"),
        "persistentVolumeClaim": (f"claim {source.get('claimName')}", "yes"),
        "nfs": (f"nfs {source.get('server')}:{source.get('path')}", "yes"),
        "csi": (f"a volume of driver {source.get('driver')}", "unknown"),
    }
    if source.get("driver") == _BUCKETS:
        return f"bucket {source.get('volumeAttributes', {}).get('bucketName')}", "yes"
    # the other types of Kubernetes are disks and file systems of networks
    return known.get(kind, (f"a volume of type {kind}", "yes"))


def _unknown_chart(found: Survival) -> str:
    return "chartgen does not know this chart, nor whether it saves checkpoints" if found.saves == "unknown" else ""


def _unknown_store(held: Store) -> str:
    if not held.directory:
        return "nothing says where its checkpoints are"
    return f"whether {held.where} keeps {held.directory} is not known" if held.stays == "unknown" else ""
