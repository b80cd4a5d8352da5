"""Why pods of an admitted run are missing, are not placed, or do not start."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone

from chartgen.errors import Problem
from chartgen.kube import NODE, Cluster, ClusterError, Object
from chartgen.kube.run_kinds import kind_of
from chartgen.kube.scheduling import untolerated
from chartgen.releases.history import parse_time
from chartgen.releases.status.events import events_of, pod_warnings, run_warnings
from chartgen.releases.status.members import Member
from chartgen.releases.status.messages import LONGEST, Wording, reword, why_rejected
from chartgen.releases.status.pod_summary import PodSummary
from chartgen.visible import counted

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
        pods: Number of pods with this message.
        taints: Taints of the machines that the pods do not tolerate, for schedulers that do not name them.
    """
    many = counted(pods, "pod")
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


_MOST = 3  # causes of one kind, as examples
_SETTLE = timedelta(seconds=5)  # time for every controller to write a first status of a new object
# Messages of controllers that restart a run or give it up; the failure already reports that.
_AFTERMATH = {"BackoffLimitExceeded", "DefaultFailurePolicy", "RestartJobSetFailurePolicyAction", "ReachedMaxRestarts"}
# Reasons of waiting containers (kubernetes, pkg/kubelet/images/types.go and pkg/kubelet/kuberuntime).
_IMAGE = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
_CONFIG = {"CreateContainerConfigError", "CreateContainerError"}
# Kueue's marks on pods that request a topology, and how it pins them (pkg/controller/tas/topology_ungater.go).
_TOPOLOGIES = tuple(
    f"kueue.x-k8s.io/podset-{mode}-topology" for mode in ("required", "preferred", "unconstrained", "slice-required")
)
_HOSTNAME = "kubernetes.io/hostname"
# The scheduler's message for machines that a pod's selector excludes; for a pinned pod these are all but one.
_OTHERS = re.compile(r"\d+ node\(s\) didn't match Pod's node affinity(?:/selector)?(?:, )?")
_REASON = re.compile(r"available: [^.]*\d+ (?:Insufficient|Too many|node\(s\))")
_MOUNT_HINT = "see the claims and Secrets that the pods mount: `kubectl describe pod`"


class NotYet(Problem):
    """A cause that may only be the delay of a busy cluster: its controller or scheduler has not reported yet."""


def why_not_started(
    cluster: Cluster, runs: Sequence[Object], summary: PodSummary, expected: int, namespace: str
) -> list[Problem]:
    """Return why some pods of admitted runs do not run; empty in the first seconds."""
    causes = [_failed(member) for member in summary.failed[:_MOST]]
    if summary.pods < expected:
        causes += _missing(cluster, runs, namespace)
    causes += [_unplaced(cluster, summary, message, count) for message, count in summary.unplaced.items()]
    causes += [_stuck(*stuck, count) for stuck, count in summary.stuck.items()]
    if summary.names:
        warned = pod_warnings(cluster, summary.names, namespace)
        causes += [Problem(f"a pod does not start: {event}", hint=_MOUNT_HINT) for event in warned]
    if summary.silent and not causes:
        causes.append(NotYet(f"the scheduler has not reported on {counted(summary.silent, 'pod')} yet"))
    return list(dict.fromkeys(causes))


def _failed(member: Member) -> Problem:
    """Return the problem of a pod that failed while its run continues."""
    end = member.ends[0]
    how = f"container {end.container} ended with exit code {end.exit_code}" if end.container else ""
    return Problem(f"pod {member.name} failed: {how or end.message or end.reason or 'no reason given'}")


def _missing(cluster: Cluster, runs: Iterable[Object], namespace: str) -> list[Problem]:
    warned = [event for event in run_warnings(cluster, runs, namespace) if event.reason not in _AFTERMATH]
    if warned:
        newest = sorted(warned, key=lambda event: event.at, reverse=True)
        return [why_rejected(event.message) for event in newest][:_MOST]
    return [cause for run in runs if (cause := _unhandled(cluster, run))]


def _unhandled(cluster: Cluster, run: Object) -> Problem | None:
    """Return a problem when no controller handles a run: no status, and events of the queue only."""
    status = run.get("status", {})
    age = datetime.now(timezone.utc) - parse_time(run["metadata"]["creationTimestamp"])
    if status or age < _SETTLE or any("kueue" not in event.source for event in events_of(cluster, run)):
        return None
    who, name = kind_of(run).controller, f"{run['kind']} {run['metadata']['name']}"
    text = f"no controller is handling {name}: {who.title} does not run, or cannot write to it"
    return NotYet(text, hint=f"see `{who.command}`")


def _unplaced(cluster: Cluster, summary: PodSummary, message: str, count: int) -> Problem:
    pod = summary.example[message]
    taints = taints_of_machines(cluster, pod) if "untolerated taint" in message else ""
    if machine := _assigned(pod):
        return _unplaced_on(machine, message, count, taints)
    return unplaced(message, count, taints)


def _assigned(pod: Object) -> str:
    """Return the machine that Kueue's topology has assigned to a pod; empty without an assignment."""
    selector = pod["spec"].get("nodeSelector", {})
    is_placed = any(name in pod["metadata"].get("annotations", {}) for name in _TOPOLOGIES)
    return str(selector.get(_HOSTNAME, "")) if is_placed else ""


def _unplaced_on(machine: str, message: str, count: int, taints: str) -> Problem:
    """Return why pods do not fit onto their assigned machine; a mismatch of other machines is expected."""
    rest = _OTHERS.sub("", message[:LONGEST])
    where = f"such as one on machine {machine}, to which Kueue's topology has assigned it"
    if not _REASON.search(rest):
        hint = f"see `kubectl get node {machine} --show-labels`; if the run is evicted, Kueue assigns other machines"
        text = f"{counted(count, 'pod')} cannot be placed, {where}: it is not there, or has other labels"
        return Problem(text, hint=hint)
    problem = unplaced(rest, count, taints)
    return Problem(f"{problem.message}; {where}", hint=problem.hint)


def _stuck(reason: str, message: str, image: str, count: int) -> Problem:
    if reason in _IMAGE:
        text = f"{counted(count, 'pod')} cannot pull the image {image} ({reason}): {message}"
        return Problem(text, hint="check its name and tag, and `imagePullSecrets`")
    hint = "create the Secret or ConfigMap that it names in this namespace"
    if reason not in _CONFIG:
        hint = "see `kubectl describe pod`"
    return Problem(f"{counted(count, 'pod')} cannot start ({reason}): {message}", hint=hint)
