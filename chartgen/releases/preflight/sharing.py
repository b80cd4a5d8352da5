"""Check for another release with the same output directory: each could resume from or prune the other's checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chartgen.kube import ClusterError, Object
from chartgen.kube.workloads import find_workers
from chartgen.releases.history import RevisionRecord, each_deployed, read_record
from chartgen.releases.preflight.context import PreflightContext
from chartgen.releases.preflight.result import Diagnosis, warned

# Volumes that belong to a single pod (kubernetes, api/core/v1/types.go).
_OF_A_POD = {"emptyDir", "ephemeral"}


def outputs_of_others(context: PreflightContext) -> Iterator[Diagnosis]:
    """No other release saves to the same directory of the same storage."""
    own = _outputs(context.objects, context.namespace)
    if own is None:
        return
    # a claim belongs to a namespace, other storage is cluster-wide
    everywhere = "persistentVolumeClaim" not in own[1]
    try:
        yield from _compared(context, own, "" if everywhere else context.namespace)
    except ClusterError as error:
        if error.denied is None or not everywhere:
            raise
        text = f"not checked whether releases of other namespaces save to {own[0]}: no permission to list secrets"
        yield warned(text, "run chartgen doctor as an account that may list them in all namespaces")
        yield from _compared(context, own, context.namespace)


def _compared(context: PreflightContext, own: tuple[str, Object], namespace: str) -> Iterator[Diagnosis]:
    kept = each_deployed(context.cluster, namespace)
    for _, (release, other) in context.cluster.judged(kept, lambda item: _outputs_of(context, read_record(item))):
        if other == own:
            text = f"{release} saves to {own[0]} of the same storage"
            yield warned(text, "set another run.name, unless this release is to continue that one's training")


def _outputs_of(context: PreflightContext, record: RevisionRecord) -> tuple[str, tuple[str, Object] | None]:
    """Return a release, and where it saves; None for this one."""
    other = None if _is_own(context, record) else _outputs(record.run_objects, record.namespace)
    return f"release {record.name} of namespace {record.namespace}", other


def _is_own(context: PreflightContext, record: RevisionRecord) -> bool:
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
