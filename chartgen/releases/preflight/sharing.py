"""Check for another release with the same output directory: each could resume from or prune the other's checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chartgen.errors import ChartgenError
from chartgen.kube import Object
from chartgen.kube.workloads import find_workers
from chartgen.releases.history import Record, find_deployed, read_record
from chartgen.releases.preflight.context import PreflightContext, read_if_allowed
from chartgen.releases.preflight.result import Diagnosis, warned

# Volumes that belong to a single pod (kubernetes, api/core/v1/types.go).
_OF_A_POD = {"emptyDir", "ephemeral"}


def outputs_of_others(context: PreflightContext) -> Iterator[Diagnosis]:
    """No other release saves to the same directory of the same storage."""
    own = _outputs(context.objects, context.namespace)
    if own is None:
        return
    # a claim belongs to a namespace, other storage is cluster-wide
    found = None if "persistentVolumeClaim" in own[1] else read_if_allowed(lambda: find_deployed(context.cluster, ""))
    if found is None:
        found = find_deployed(context.cluster, context.namespace)
        if "persistentVolumeClaim" not in own[1]:
            text = f"not checked whether releases of other namespaces save to {own[0]}: no permission to list secrets"
            yield warned(text, "run chartgen doctor as an account that may list them in all namespaces")
    for kept in found:
        yield from _compared(context, own, kept)


def _compared(context: PreflightContext, own: tuple[str, Object], kept: Object) -> Iterator[Diagnosis]:
    try:
        record = read_record(kept)
    except ChartgenError:
        metadata = kept["metadata"]
        text = f"not checked whether another release saves to {own[0]}: {metadata['name']} is not a record of Helm"
        yield warned(text, f"kubectl --namespace {metadata['namespace']} describe secret {metadata['name']}")
        return
    if not _is_own(context, record) and _outputs(record.objects, record.namespace) == own:
        text = f"release {record.name} of namespace {record.namespace} saves to {own[0]} of the same storage"
        yield warned(text, "set another run.name, unless this release is to continue that one's training")


def _is_own(context: PreflightContext, record: Record) -> bool:
    return (record.name, record.namespace) == (context.release, context.namespace)


def _outputs(objects: list[Object], namespace: str) -> tuple[str, dict[str, Any]] | None:
    """Return the directory of a run's checkpoints and its volume; None when no other pod can have that volume."""
    workers = find_workers(objects)
    directory = workers.env.get("CHECKPOINT_DIRECTORY", "") if workers else ""
    volume = workers.volume(directory) if workers and directory else {}
    source = {key: value for key, value in volume.items() if key != "name"}
    if not source or _OF_A_POD & set(source):
        return None
    return directory, source | ({"namespace": namespace} if "persistentVolumeClaim" in source else {})
