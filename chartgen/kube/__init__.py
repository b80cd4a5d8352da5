"""Access to a Kubernetes API server, in plain data.

The Kubernetes client library (lightkube) reads kubeconfig files and authenticates; requests and answers are the API's
JSON as dicts, so that a custom resource does not need a class. It is imported at the first connection.
"""

from __future__ import annotations

from chartgen.kube.cluster import Cluster, wait_for
from chartgen.kube.connection import connect
from chartgen.kube.http import ClusterError, Streams, is_passing
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
