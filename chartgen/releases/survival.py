"""Data of a run that outlives its pods: whether it saves checkpoints, and whether their volume stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from chartgen.helm.values import coalesce
from chartgen.kube.workloads import find_workers

if TYPE_CHECKING:
    from chartgen.kube.workloads import Workers
    from chartgen.releases.history import RevisionRecord

# Variables of the program's container with its output directories.
_CHECKPOINTS, _LOGS = "CHECKPOINT_DIRECTORY", "RUN_DIRECTORY"
# Volumes that end with their pod (kubernetes, api/core/v1/types.go), and volumes that pods cannot write.
_PASSING = {"emptyDir", "ephemeral"}
_READ_ONLY = {"configMap", "secret", "projected", "downwardAPI", "image"}
_BUCKETS = "gcsfuse.csi.storage.gke.io"  # inline volumes of other drivers may end with the pod

Stays: TypeAlias = Literal["yes", "no", "machine", "unknown"]


@dataclass(frozen=True)
class Store:
    """Storage of a directory of a program."""

    directory: str = ""  # the directory; empty when the program has none
    where: str = ""  # description of the storage
    # "yes"; "no" when it ends with the pod; "machine" when it is local to the machine; "unknown"
    stays: Stays = "unknown"


@dataclass(frozen=True)
class Survival:
    """Data of a run that outlives its pods."""

    trains: bool  # whether it trains and so has steps to lose
    # "yes" or "no", according to its values; "unknown" for a chart that chartgen does not know
    saves: Literal["yes", "no", "unknown"]
    interval: int  # steps between two checkpoints; 0 = unknown
    checkpoints: Store  # their storage
    logs: Store  # storage of its logs

    @property
    def is_safe(self) -> bool:
        """Report whether no confirmation is needed: no steps, checkpoints that stay, or an unknown chart.

        An unknown chart is not safe when its checkpoint directory ends with the pod.
        """
        return not self.trains or (self.saves != "no" and self.checkpoints.stays in ("yes", "unknown"))

    @property
    def risk(self) -> str:
        """Return why steps are or may be lost with the pods; empty without a risk."""
        store = self.checkpoints
        if not self.trains:
            return ""
        if self.saves == "no":
            return "it saves no checkpoints (checkpoint.enabled is false)"
        if store.stays == "no":
            return f"checkpoints in {store.directory} end with its pods ({store.where})"
        if store.stays == "machine":
            return f"checkpoints in {store.directory} are on {store.where}, which other machines do not have"
        unknown = []
        if self.saves == "unknown":
            unknown.append("chartgen does not know this chart, nor whether it saves checkpoints")
        if not store.directory:
            unknown.append("the location of its checkpoints is not known")
        elif store.stays == "unknown":
            unknown.append(f"whether {store.where} keeps {store.directory} is not known")
        return " and ".join(unknown)


def survival(workers: Workers, values: Mapping[str, Any]) -> Survival:
    """Determine which data of a run outlives its pods.

    Args:
        workers: The run's pods, rendered or live.
        values: The values that its templates received, chart defaults included; any values for a chart that
            chartgen does not know.
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


def survival_of(record: RevisionRecord) -> Survival | None:
    """Determine which data outlives the pods of a revision's run; None without a run."""
    workers = find_workers(record.objects)
    return survival(workers, stored_values(record)) if workers else None


def stored_values(record: RevisionRecord) -> dict[str, Any]:
    """Return the values that the templates of a revision received."""
    return coalesce(record.content.get("values") or {}, record.values)


def _store(workers: Workers, variable: str) -> Store:
    directory = workers.env.get(variable, "")
    return Store(directory, *_fate(workers.volume(directory))) if directory else Store()


def _fate(volume: Mapping[str, Any]) -> tuple[str, Stays]:
    """Return the description of a volume, and whether it stays when its pods end."""
    kind = next((key for key in volume if key != "name"), "")
    source = volume.get(kind) or {}
    if kind in _PASSING or kind in _READ_ONLY:
        return "the machine's memory" if source.get("medium") == "Memory" else f"a volume of type {kind}", "no"
    known: dict[str, tuple[str, Stays]] = {
        "": ("the container's own file system", "no"),
        "hostPath": (f"the machine's own disk, {source.get('path')}", "machine"),
        "persistentVolumeClaim": (f"claim {source.get('claimName')}", "yes"),
        "nfs": (f"nfs {source.get('server')}:{source.get('path')}", "yes"),
        "csi": (f"a volume of driver {source.get('driver')}", "unknown"),
    }
    if source.get("driver") == _BUCKETS:
        return f"bucket {source.get('volumeAttributes', {}).get('bucketName')}", "yes"
    # all other volume types of Kubernetes are network disks and file systems
    return known.get(kind, (f"a volume of type {kind}", "yes"))
