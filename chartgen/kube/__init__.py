"""Access to a Kubernetes API server, in plain data.

The Kubernetes client library (lightkube) reads kubeconfig files and authenticates; requests and answers are the API's
JSON as dicts, so that a custom resource does not need a class. It is imported at the first connection.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chartgen.kube.kinds import (
    CLAIM,
    CLUSTER_QUEUE,
    CONFIG_MAP,
    CRD,
    CSI_DRIVER,
    EVENT,
    INSTANCE_LABEL,
    JOB,
    JOBSET,
    LEASE,
    LOCAL_QUEUE,
    MPIJOB,
    NAMESPACE,
    NODE,
    POD,
    POD_GROUP,
    PYTORCHJOB,
    QUEUE_LABEL,
    RAYJOB,
    SECRET,
    STORAGE_CLASS,
    TRAINING_RUNTIME,
    TRAINJOB,
    VOLCANO_JOB,
    VOLCANO_QUEUE,
    WORKLOAD,
    WORKLOAD_V1BETA1,
    Kind,
    Object,
)

if TYPE_CHECKING:
    from chartgen.kube.cluster import Cluster, wait_for
    from chartgen.kube.connection import connect
    from chartgen.kube.http import ClusterError, Streams, is_passing

__all__ = [
    "CLAIM",
    "CLUSTER_QUEUE",
    "CONFIG_MAP",
    "CRD",
    "CSI_DRIVER",
    "EVENT",
    "INSTANCE_LABEL",
    "JOB",
    "JOBSET",
    "LEASE",
    "LOCAL_QUEUE",
    "MPIJOB",
    "NAMESPACE",
    "NODE",
    "POD",
    "POD_GROUP",
    "PYTORCHJOB",
    "QUEUE_LABEL",
    "RAYJOB",
    "SECRET",
    "STORAGE_CLASS",
    "TRAINING_RUNTIME",
    "TRAINJOB",
    "VOLCANO_JOB",
    "VOLCANO_QUEUE",
    "WORKLOAD",
    "WORKLOAD_V1BETA1",
    "Cluster",
    "ClusterError",
    "Kind",
    "Object",
    "Streams",
    "connect",
    "is_passing",
    "wait_for",
]

# The client, which commands without a cluster do not load: `build` asks this package for quantities alone.
_CLIENT = {
    "Cluster": "cluster",
    "ClusterError": "http",
    "Streams": "http",
    "connect": "connection",
    "is_passing": "http",
    "wait_for": "cluster",
}


def __getattr__(name: str) -> Any:
    if name not in _CLIENT:
        raise AttributeError(f"module 'chartgen.kube' has no attribute {name!r}")
    return getattr(import_module(f"chartgen.kube.{_CLIENT[name]}"), name)
