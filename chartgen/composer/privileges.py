"""Privileges of fragments and workload kinds: one capability or folder of the machine, for the containers that use it.

hostNetwork                                the pod
privileged in program                      the program container, with any name that its workload kind gives it
root in program                            it runs as root, or as the user of its image
default capabilities in tcpx-daemon        it keeps the default capabilities of a container: not all are dropped
NET_ADMIN in tcpx-daemon, tcpxo-daemon     a capability of these containers
hostPath /dev/infiniband in program        a folder of the machine, mounted by this container
hostPath .Values.localDisk in program      the same, named by a value
hostPath /opt/vendor/topo.xml in program   a vendor's file, which the mounts can only read

kube-linter rejects some of them: a chart's configuration for it leaves out these checks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from chartgen.composer.pod_files import slot_text
from chartgen.errors import Problem, refuse
from chartgen.helm import gotemplate
from chartgen.helm.yaml import Document, load

PROGRAM = "program"
VALUE = ".Values."
# The default capabilities, except those that a container drops.
DEFAULTS = "default capabilities"
# Of the pod: its namespaces, and privileges that only kube-linter checks.
_OF_THE_POD = ("hostNetwork", "hostPID", "hostIPC", "unlimited")
_FORM = re.compile(
    rf"(?P<name>host[A-Z][A-Za-z]+|unlimited|privileged|root|{DEFAULTS}|[A-Z_]+)(?: (?P<path>[/.]\S*))?"
    r"(?: in (?P<containers>[a-z0-9][a-z0-9-]*(?:, [a-z0-9][a-z0-9-]*)*))?"
)
# A normalized path that is not a socket of a container runtime.
_PLAIN = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+(?<!\.sock)")
# System folders of the machine: writing there, or reading secrets there, controls the machine. /var contains the
# kubelet, container runtimes and cron tables, /run and /var/run their sockets, /opt the programs of the CNI. Where the
# system is an image, /sysroot is the disk with all of it (ostreedev.github.io/ostree/adapting-existing, 2025).
SYSTEM = (
    *("bin", "boot", "dev", "efi", "etc", "home", "lib", "lib32", "lib64", "libx32", "opt", "ostree", "proc", "root"),
    *("run", "sbin", "sys", "sysroot", "usr", "var"),
)
# Inside these, a fragment may state some: devices of GPUs and networks, shared memory, the driver and the plugin that
# GKE keeps beside the kubelet, and two folders that Google's manifests mount into the receive daemon of GPUDirect
# (AI-Hypercomputer/gpu-recipes @ 2e1fd5e). Other devices are disks and memory, other homes those of users.
_OPEN = re.compile(
    r"/dev/(aperture_devices|dmabuf_import_helper|dri|gdrdrv|hugepages|infiniband|kfd|nvidia[a-z0-9-]*|shm)(/.+)?"
    r"|/home/kubernetes/bin/(gib|nvidia)(/.+)?|/proc/sys|/sys"
)
# Here, for reading alone: what vendors add to their machines, such as Azure's /opt/microsoft/ndv5-topo.xml. /opt is for
# added programs, /etc for settings (Filesystem Hierarchy Standard 3.0), some of them secret: only Crusoe's folder.
_READABLE = ("/opt/", "/etc/crusoe/nccl_topo")
# Whoever may write there makes the kernel start a program of theirs (core(5)): a fragment may state it, nobody else.
KERNEL = ("/proc/sys", "/sys")
SYSTEM_FOLDER = "belongs to the machine's own system"
FORBIDDEN_HINT = "put its files into an image or a ConfigMap, or into a folder such as /mnt/settings or /opt/VENDOR"
_READ_HINT = "set `type: File` or `Directory` in the volume, and `readOnly: true` in each of its mounts"
# Container-Optimized OS keeps /var, /home and /etc beside the local disks of GKE's machines
# (cloud.google.com/container-optimized-os/docs/concepts/disks-and-filesystem).
_STATEFUL, _DISKS = "/mnt/stateful_partition", "/mnt/stateful_partition/kube-ephemeral-ssd"


class Privilege(NamedTuple):
    """One stated privilege."""

    name: str  # `privileged`, `hostPath`, `hostNetwork`, a capability, ...
    path: str = ""  # the folder of a hostPath, or the value with its name as `.Values.KEY`; empty for other privileges
    containers: tuple[str, ...] = ()  # the containers that use it; empty for the pod


def read_privilege(text: str) -> Privilege:
    """Read one privilege of a fragment; raise ValueError if it lacks a container or folder, or has a bad folder."""
    match = _FORM.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a privilege")
    name, path = match["name"], match["path"] or ""
    containers = tuple(match["containers"].split(", ")) if match["containers"] else ()
    if bool(path) != (name == "hostPath"):
        raise ValueError(f"{text!r} names a folder, which only hostPath has" if path else f"{text!r} names no folder")
    if bool(containers) == (name in _OF_THE_POD):
        raise ValueError(f"{text!r}: {name} is the whole pod's" if containers else f"{text!r} names no container")
    if path.startswith("/") and is_forbidden(path):
        raise ValueError(f"{path} {SYSTEM_FOLDER}, which no reason allows")
    return Privilege(name, path, containers)


def read_privileges(document: Document, meta: Mapping[str, Any]) -> dict[str, str]:
    """Return a definition's stated privileges with reasons; raise ChartgenError with the places of invalid ones."""
    stated: dict[str, str] = meta.get("privileges", {})
    problems = []
    for text in stated:
        try:
            read_privilege(text)
        except ValueError as error:
            hint = "write it as in `NET_ADMIN in program` or `hostPath /dev/infiniband in program`"
            if SYSTEM_FOLDER in str(error):
                hint = FORBIDDEN_HINT
            problems.append(document.problem(str(error), ("privileges", text), hint))
    refuse(problems)
    return stated


def is_system(path: str) -> bool:
    """Report whether a folder belongs to the machine's own system, or its path is ambiguous."""
    if not _PLAIN.fullmatch(path) or path == "/mnt":  # which contains the next
        return True
    stateful = f"{path}/".startswith(f"{_STATEFUL}/") and not f"{path}/".startswith(f"{_DISKS}/")
    return stateful or path.split("/")[1] in SYSTEM


def is_forbidden(path: str) -> bool:
    """Report whether no reason allows a pod to mount this file or folder of the machine."""
    opened = _PLAIN.fullmatch(path) and _OPEN.fullmatch(path)
    return is_system(path) and not opened and not only_read(path)


def patterns() -> dict[str, str]:
    """Return `is_forbidden` and `only_read` as Go's patterns: plain, system, open, readable."""
    readable = "|".join(f"{each}.+" if each[-1] == "/" else each for each in _READABLE)
    return {
        "plain": "^(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$",
        "system": f"^(/({'|'.join(SYSTEM)})(/.*)?|/mnt|{_STATEFUL}(/.*)?)$",
        "open": f"^({_OPEN.pattern}|{readable}|{_DISKS}(/.*)?)$",
        "readable": f"^({readable})$",
    }


def only_read(path: str) -> bool:
    """Report whether a reason allows a pod to mount this file or folder of the machine for reading alone."""
    return _inside(path, _READABLE)


def volume_fault(host_path: Mapping[str, Any], *, writable: bool) -> tuple[str, str] | None:
    """Return why no reason allows a volume of the machine, and what to do instead; None if a reason can.

    Args:
        host_path: The volume's `hostPath`.
        writable: Whether a container mounts it without `readOnly`.
    """
    path = str(host_path.get("path") or "")
    if path and is_forbidden(path):
        fault = SYSTEM_FOLDER if path[0] in "/\\" or path[1:2] == ":" else "is not an absolute path"
        return f"{path} {fault}", FORBIDDEN_HINT
    # without a type, or with FileOrCreate, the machine gets what it lacks
    if only_read(path) and (writable or host_path.get("type") not in ("File", "Directory")):
        return f"{path} {SYSTEM_FOLDER}, and pods may only read it", _READ_HINT
    return None


def _inside(path: str, places: Iterable[str]) -> bool:
    return bool(_PLAIN.fullmatch(path)) and any(
        path == place if place[-1] != "/" else path.startswith(place) for place in places
    )


def faults_of_volumes(folder: Path, privileges: Collection[str]) -> Iterator[Problem]:
    """Yield the volumes of a fragment that no reason allows, or only one that the fragment does not state.

    Lint judges the rest, such as paths that are values, when it renders the chart.

    Args:
        folder: The fragment's folder, whose slots are valid.
        privileges: Its stated privileges.
    """
    document = _slot(folder, "volumes.yaml")
    stated = {read_privilege(privilege).path for privilege in privileges}
    writable = {
        mount.get("name")
        for mount in _list(_slot(folder, "volumeMounts.yaml").data)
        if mount.get("readOnly") is not True
    }
    for index, volume in enumerate(_list(document.data)):
        source = volume.get("hostPath")
        if not isinstance(source, dict) or not (path := str(source.get("path"))).startswith("/"):
            continue
        at = (index, "hostPath", "path")
        if fault := volume_fault(source, writable=volume.get("name") in writable):
            yield document.problem(fault[0], at, fault[1])
        elif only_read(path) and path not in stated and not gotemplate.is_placeholder(path):
            hint = f"add to privileges in fragment.yaml: `hostPath {path} in program: REASON`"
            yield document.problem(f"{path} is mounted without a stated reason", at, hint)


def _slot(folder: Path, slot: str) -> Document:
    file, text = slot_text(folder, slot)
    return load(gotemplate.mask(text), file, allow_duplicates=True)


def _list(data: Any) -> list[Mapping[str, Any]]:
    return [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []


# -- kube-linter

KUBE_LINTER = ".kube-linter.yaml"  # kube-linter reads it from its working directory
WITHOUT_TTL = "an upgrade without a change would run again what a time to live removed"

# Privilege -> the checks that reject it: stackrox/kube-linter @ 905fb08 (after 0.7.6), pkg/builtinchecks/yamls.
REJECTING = {
    "privileged": ("privileged-container", "privilege-escalation-container"),
    "hostNetwork": ("host-network",),
    "hostPath": ("sensitive-host-mounts",),
    "NET_RAW": ("drop-net-raw-capability",),
    "root": ("run-as-non-root", "no-read-only-root-fs"),
    "unlimited": ("unset-cpu-requirements", "unset-memory-requirements"),
}


def kube_linter_config(stated: Iterable[Mapping[str, str]]) -> str:
    """Return kube-linter's configuration file, without the checks that reject what a chart's fragments state."""
    names = {read_privilege(privilege).name for privileges in stated for privilege in privileges}
    excluded = sorted({check for name in names for check in REJECTING.get(name, ())})
    head = f"""\
# For `kube-linter lint .` in this folder; FRAGMENTS.md has the reasons of the privileges.
checks:
  exclude:
    # {WITHOUT_TTL}
    - job-ttl-seconds-after-finished
"""
    return head + "".join(f"    - {check}\n" for check in excluded)
