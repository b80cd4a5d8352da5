"""Plain wordings of the scheduler's messages for pods that it cannot place."""

from __future__ import annotations

import re

from chartgen.errors import Problem
from chartgen.kube import NODE, Cluster, ClusterError, Object
from chartgen.kube.scheduling import untolerated
from chartgen.releases.status.messages import LONGEST, Wording, reword

# The message of Kubernetes (pkg/scheduler/framework/types.go, FitError), whose second half is about preemption.
# Volcano writes "unavailable".
_FIT_ERROR = re.compile(
    r"0/(?P<all>\d+) nodes are (?:un)?available: (?P<why>.*?)\.*(?:\s+(?:no new claims|preemption:).*)?"
)
_MORE = "wait until other work ends, ask for fewer `nodes`, or add machines"
_CLAIM = "see `kubectl describe pvc`; the setup chart makes the claims that its values name"


_CLAIMS = (
    Wording(
        r"pod has unbound immediate PersistentVolumeClaims", "a claim of the pods is not bound to a volume", _CLAIM
    ),
    Wording(r'persistentvolumeclaim "([^"]+)" not found', r"no claim \1", _CLAIM),
    Wording(r'persistentvolumeclaim "([^"]+)" is being deleted', r"claim \1 is being deleted", _CLAIM),
)
# Messages of the scheduler's plugins (kubernetes, pkg/scheduler/framework/plugins).
_PREDICATES = (
    Wording(r"(\d+) Insufficient ([^\s,]+)", r"\1 have too little free \2", _MORE),
    Wording(r"(\d+) Too many pods", r"\1 run their maximum of pods", _MORE),
    Wording(
        r"(\d+) node\(s\) had untolerated taint(?:\(s\)| (\{.*?\}))",
        r"\1 have a taint that the pods do not tolerate \2",
        "add it to `tolerations`, or remove it with `kubectl taint nodes`",
    ),
    Wording(
        r"(\d+) node\(s\) didn't match Pod's node affinity(?:/selector)?",
        r"\1 have other labels than the pods ask for",
        "compare `machineType` and `nodeSelector` with `kubectl get nodes --show-labels`",
    ),
    Wording(r"(\d+) node\(s\) were unschedulable", r"\1 are cordoned", "let them take work with `kubectl uncordon`"),
    Wording(
        r"(\d+) node\(s\) didn't have free ports for the requested pod ports",
        r"\1 have the network port in use",
        "another run of the machines' own network uses it; wait until it ends",
    ),
    Wording(
        r"(\d+) node\(s\) didn't (?:match|satisfy).*?anti-affinity(?: rules)?",
        r"\1 still run pods of another run of this release",
        "wait until they have stopped; see `kubectl get pods`",
    ),
    Wording(
        r"(\d+) node\(s\) had volume node affinity conflict",
        r"\1 cannot reach the volume of a claim",
        "use machines of the zone of the volume, or a claim that all zones reach",
    ),
    *_CLAIMS,
)


def unplaced(message: str, pods: int, taints: str = "") -> Problem:
    """Return why the scheduler cannot place pods.

    Args:
        message: The scheduler's message for each of them.
        pods: Number of pods with this message.
        taints: Taints of the machines that the pods do not tolerate, for schedulers that do not name them.
    """
    many = f"{pods} pod{'s' if pods > 1 else ''}"
    match = _FIT_ERROR.fullmatch(message[:LONGEST])
    found = reword(match["why"] if match else message, _PREDICATES)
    if not found:
        return Problem(f"{many} cannot be placed: {message}")
    machines = f"of {match['all']} machines " if match and match["why"][0].isdecimal() else ""
    reasons = ", ".join(dict.fromkeys(cause.message.rstrip() for cause in found))
    reasons += f" ({taints})" if taints and "taint" in reasons and "{" not in reasons else ""
    return Problem(
        f"{many} cannot be placed: {machines}{reasons}", hint="; ".join(dict.fromkeys(each.hint for each in found))
    )


def taints_of_machines(cluster: Cluster, pod: Object) -> str:
    """Return the taints that repel a pod from its selected machines; empty without the permission to read machines."""
    tolerations = pod["spec"].get("tolerations") or ()
    found: dict[str, None] = {}
    try:
        nodes = cluster.each(NODE, labels=pod["spec"].get("nodeSelector", {}))
        for _, taints in cluster.judged(nodes, lambda node: untolerated(node, tolerations)):
            found |= dict.fromkeys(taints)
    except ClusterError as error:
        if error.status == 403:  # machines are cluster-scoped, so many users cannot read them
            return ""
        raise
    return ", ".join(found)
