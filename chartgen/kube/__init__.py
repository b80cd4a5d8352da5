"""Talking to a Kubernetes API server, in plain data.

The Kubernetes client library (lightkube) reads kubeconfig files and authenticates; requests and answers are the JSON
of the API as dicts, so that a custom resource needs no class. It is imported at the first connection.
"""

from __future__ import annotations

from chartgen.kube.cluster import Cluster, wait_for
from chartgen.kube.connection import connect
from chartgen.kube.http import ClusterError, Streams
from chartgen.kube.kinds import (
    CLAIM,
    CLUSTER_QUEUE,
    CONFIG_MAP,
    CRD,
    EVENT,
    INSTANCE_LABEL,
    JOB,
    JOBSET,
    LEASE,
    LOCAL_QUEUE,
    NAMESPACE,
    NODE,
    POD,
    POD_GROUP,
    PYTORCHJOB,
    QUEUE_LABEL,
    SECRET,
    STORAGE_CLASS,
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
    "EVENT",
    "INSTANCE_LABEL",
    "JOB",
    "JOBSET",
    "LEASE",
    "LOCAL_QUEUE",
    "NAMESPACE",
    "NODE",
    "POD",
    "POD_GROUP",
    "PYTORCHJOB",
    "QUEUE_LABEL",
    "SECRET",
    "STORAGE_CLASS",
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
    "wait_for",
]
