"""What the scheduler says of pods that it cannot place, in words."""

from __future__ import annotations

import re

from chartgen.kube import NODE, Cluster, ClusterError, Object
from chartgen.kube.taints import untolerated
from chartgen.releases.status.messages import LONGEST, Cause, Wording, reword

# What kubernetes writes (pkg/scheduler/framework/types.go, FitError), with a second half about preemption.
# Volcano writes "unavailable".
_FIT_ERROR = re.compile(
    r"0/(?P<all>\d+) nodes are (?:un)?available: (?P<why>.*?)\.*(?:\s+(?:no new claims|preemption:).*)?"
)
_MORE = "wait until other work ends, ask for fewer `nodes`, or add machines"
_CLAIM = "see `kubectl describe pvc`; the setup chart makes the claims that its values name"


def _wording(pattern: str, words: str, hint: str) -> Wording:
    return Wording(re.compile(pattern), words, hint)


# Words of the scheduler's plugins (kubernetes, pkg/scheduler/framework/plugins).
_PREDICATES = (
    _wording(r"(\d+) Insufficient ([^\s,]+)", r"\1 have too little free \2", _MORE),
    _wording(r"(\d+) Too many pods", r"\1 hold as many pods as they may", _MORE),
    _wording(
        r"(\d+) node\(s\) had untolerated taint(?:\(s\)| (\{.*?\}))",
        r"\1 have a taint that the pods do not tolerate \2",
        "add it to `tolerations`, or remove it with `kubectl taint nodes`",
    ),
    _wording(
        r"(\d+) node\(s\) didn't match Pod's node affinity(?:/selector)?",
        r"\1 have other labels than the pods ask for",
        "compare `machineType` and `nodeSelector` with `kubectl get nodes --show-labels`",
    ),
    _wording(r"(\d+) node\(s\) were unschedulable", r"\1 are cordoned", "let them take work with `kubectl uncordon`"),
    _wording(
        r"(\d+) node\(s\) didn't have free ports for the requested pod ports",
        r"\1 have the network port in use",
        "another run of the machines' own network uses it; wait until it ends",
    ),
    _wording(
        r"(\d+) node\(s\) didn't (?:match|satisfy).*?anti-affinity(?: rules)?",
        r"\1 still hold pods of another run of this release",
        "wait until they have stopped; see `kubectl get pods`",
    ),
    _wording(
        r"(\d+) node\(s\) had volume node affinity conflict",
        r"\1 cannot reach the volume of a claim",
        "use machines of the zone of the volume, or a claim that all zones reach",
    ),
    _wording(
        r"pod has unbound immediate PersistentVolumeClaims", "a claim of the pods is not bound to a volume", _CLAIM
    ),
    _wording(r'persistentvolumeclaim "([^"]+)" not found', r"there is no claim \1", _CLAIM),
    _wording(r'persistentvolumeclaim "([^"]+)" is being deleted', r"claim \1 is being deleted", _CLAIM),
)


def unplaced(message: str, pods: int, taints: str = "") -> Cause:
    """Say why the scheduler cannot place pods.

    Args:
        message: What it says of each of them.
        pods: How many pods it says this of.
        taints: Taints of the machines that the pods do not tolerate, for schedulers that do not name them.
    """
    many = f"{pods} pod{'s' if pods > 1 else ''}"
    match = _FIT_ERROR.fullmatch(message[:LONGEST])
    found = reword(match["why"] if match else message, _PREDICATES)
    if not found:
        return Cause(f"{many} cannot be placed: {message}")
    machines = f"of {match['all']} machines " if match and match["why"][0].isdecimal() else ""
    reasons = ", ".join(dict.fromkeys(cause.text.rstrip() for cause in found))
    reasons += f" ({taints})" if taints and "taint" in reasons and "{" not in reasons else ""
    return Cause(f"{many} cannot be placed: {machines}{reasons}", "; ".join(dict.fromkeys(each.hint for each in found)))


def taints_of_machines(cluster: Cluster, pod: Object) -> str:
    """Return the taints that keep a pod off the machines it asks for; empty when the user may not read machines."""
    tolerations = pod["spec"].get("tolerations") or ()
    try:
        nodes = list(cluster.each(NODE, labels=pod["spec"].get("nodeSelector", {})))
    except ClusterError as error:
        if error.status == 403:  # machines belong to no namespace, so many users cannot read them
            return ""
        raise
    return ", ".join(dict.fromkeys(taint for node in nodes for taint in untolerated(node, tolerations)))
