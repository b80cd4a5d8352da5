"""The log of one pod, as the kubelet of its machine gives it."""

from __future__ import annotations

from collections.abc import Iterator

from chartgen.kube import POD, Cluster, Streams
from chartgen.releases.status.members import Member

IDLE = 30.0  # seconds of silence after which a followed log is asked for again: the machine may be gone


def pod_log(
    cluster: Cluster, member: Member, namespace: str, streams: Streams | None = None, /, **options: str | int
) -> Iterator[str]:
    """Return the lines of the program's log as they come.

    Args:
        cluster: Where the pod runs.
        member: The pod.
        namespace: Its namespace.
        streams: Ends it from another thread.
        options: Of the API (PodLogOptions), such as follow, previous, sinceTime, tailLines or timestamps.

    Raises:
        ClusterError: The pod or its machine is gone, or its container has not started.
        MissingToolError: The connection is lost.
    """
    params = {"container": member.container, **{key: str(value) for key, value in options.items()}}
    return cluster.stream(POD, member.name, namespace, subresource="log", params=params, idle=IDLE, streams=streams)


def last_lines(cluster: Cluster, member: Member, namespace: str, count: int) -> list[str]:
    """Return the last lines of a pod's log.

    Raises:
        ClusterError: The pod or its machine is gone, or its container has not started.
        MissingToolError: The connection is lost.
    """
    return [*pod_log(cluster, member, namespace, tailLines=count)]


def since_option(since: int) -> dict[str, str | int]:
    """Return the option of the API for the last seconds; nothing for 0."""
    return {"sinceSeconds": since} if since else {}
