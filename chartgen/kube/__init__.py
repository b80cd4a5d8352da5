"""Access to a Kubernetes API server, in plain data.

The Kubernetes client library (lightkube) reads kubeconfig files and authenticates; requests and answers are the API's
JSON as dicts, so that a custom resource does not need a class. It is imported at the first connection.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chartgen.kube.kinds import *  # noqa: F403 - all kinds

if TYPE_CHECKING:
    from chartgen.kube.cluster import Cluster as Cluster
    from chartgen.kube.cluster import wait_for as wait_for
    from chartgen.kube.connection import connect as connect
    from chartgen.kube.http import ClusterError as ClusterError
    from chartgen.kube.http import Streams as Streams
    from chartgen.kube.http import is_passing as is_passing
    from chartgen.kube.http import side_by_side as side_by_side

# The client, which commands without a cluster do not load: `build` asks this package for quantities alone.
_CLIENT = {
    **dict.fromkeys(("Cluster", "wait_for"), "cluster"),
    **dict.fromkeys(("ClusterError", "Streams", "is_passing", "side_by_side"), "http"),
    "connect": "connection",
}


def __getattr__(name: str) -> Any:
    if name not in _CLIENT:
        raise AttributeError(f"module 'chartgen.kube' has no attribute {name!r}")
    return getattr(import_module(f"chartgen.kube.{_CLIENT[name]}"), name)
