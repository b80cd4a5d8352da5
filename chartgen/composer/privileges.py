"""Privileges as fragments state them: one capability or folder of the machine, for the containers that need it.

hostNetwork                                the pod
privileged in program                      the container of the program, whatever its workload kind calls it
root in program                            it runs as root, or as whom its image says
default capabilities in tcpx-daemon        it keeps those that a container has by default: they are not all dropped
NET_ADMIN in tcpx-daemon, tcpxo-daemon     a capability of these containers
hostPath /dev/infiniband in program        a folder of the machine, mounted by this container
hostPath .Values.localDisk in program      the same, named by a value
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PROGRAM = "program"
VALUE = ".Values."
# All but those that a container drops.
DEFAULTS = "default capabilities"
# Of the pod: its namespaces, and what only kube-linter asks a reason for.
_OF_THE_POD = ("hostNetwork", "hostPID", "hostIPC", "unlimited")
_FORM = re.compile(
    rf"(?P<name>host[A-Z][A-Za-z]+|unlimited|privileged|root|{DEFAULTS}|[A-Z_]+)(?: (?P<path>[/.]\S*))?"
    r"(?: in (?P<containers>[a-z0-9][a-z0-9-]*(?:, [a-z0-9][a-z0-9-]*)*))?"
)
# A path that is what it looks like, and no socket of a container runtime.
_PLAIN = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+(?<!\.sock)")
# Folders of the machine's own system: what can write there, or read secrets there, owns the machine. /var holds the
# kubelet, container runtimes and cron tables, /run and /var/run their sockets, /opt the programs of the CNI.
SYSTEM = (
    *("bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "opt", "proc", "root", "run", "sbin"),
    *("sys", "usr", "var"),
)
# Of these, a fragment may state what is inside: devices, the driver that GKE keeps in /home/kubernetes, and the two
# folders that Google's manifests mount into the receive daemon of GPUDirect.
_OPEN = ("/dev/", "/home/", "/proc/sys", "/sys")
# Container-Optimized OS keeps /var, /home and /etc beside the local disks of GKE's machines
# (cloud.google.com/container-optimized-os/docs/concepts/disks-and-filesystem).
_STATEFUL, _DISKS = "/mnt/stateful_partition", "/mnt/stateful_partition/kube-ephemeral-ssd"


@dataclass(frozen=True)
class Privilege:
    """One stated privilege.

    Args:
        name: `privileged`, `hostPath`, `hostNetwork`, a capability, ...
        path: The folder of a hostPath, or the value that names it as `.Values.KEY`; empty for others.
        containers: The containers that need it; empty for the pod.
    """

    name: str
    path: str = ""
    containers: tuple[str, ...] = ()


def read_privilege(text: str) -> Privilege:
    """Read one privilege of a fragment.

    Raises:
        ValueError: It names no container or folder, or a folder that no reason allows.
    """
    match = _FORM.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is no privilege")
    name, path = match["name"], match["path"] or ""
    containers = tuple(match["containers"].split(", ")) if match["containers"] else ()
    if bool(path) != (name == "hostPath"):
        raise ValueError(f"{text!r} names a folder, which only hostPath has" if path else f"{text!r} names no folder")
    if bool(containers) == (name in _OF_THE_POD):
        raise ValueError(f"{text!r}: {name} is the whole pod's" if containers else f"{text!r} names no container")
    if path.startswith("/") and is_forbidden(path):
        raise ValueError(f"{path} is a folder of the machine's own system, which no reason allows")
    return Privilege(name, path, containers)


def is_system(path: str) -> bool:
    """Return whether a folder belongs to the machine's own system, or is written so that nobody can say."""
    if not _PLAIN.fullmatch(path) or path == "/mnt":  # which holds the next
        return True
    stateful = f"{path}/".startswith(f"{_STATEFUL}/") and not f"{path}/".startswith(f"{_DISKS}/")
    return stateful or path.split("/")[1] in SYSTEM


def is_forbidden(path: str) -> bool:
    """Return whether no reason allows a pod this folder of the machine."""
    stated = bool(_PLAIN.fullmatch(path)) and any(
        path == each if each[-1] != "/" else path.startswith(each) for each in _OPEN
    )
    return is_system(path) and not stated
