"""Parts of a pod that charts pass on as they are: what the API server would refuse in them, or what would never start.

A JobSet, a PyTorchJob and a Volcano Job are accepted whatever their pods look like, so that nobody else tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from chartgen.checks.claim import Check, Claim
from chartgen.checks.job import Job
from chartgen.composer.slots import Segment
from chartgen.errors import did_you_mean
from chartgen.helm.set_flags import dotted
from chartgen.helm.yaml import Keys

_START = "/etc/chartgen"
_CONDITION = re.compile(r'\{\{- if (?:eq )?\.Values\.(?P<keys>[A-Za-z.]+)(?: "(?P<value>\w+)")? \}\}\n')
_MOUNT_PATH = re.compile(r"^- mountPath: (\S+)$", re.MULTILINE)
# What workloads/common/templates/_pod.yaml writes by itself.
_OWN = {
    "podLabels": ("app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component", "run"),
    "podAnnotations": ("kubectl.kubernetes.io/default-container",),
}
_LISTS = {"tolerations": "Toleration", "extraVolumes": "Volume", "extraVolumeMounts": "VolumeMount"}


def parts_of_the_pod(job: Job) -> Iterator[Claim]:
    """Affinity, tolerations, volumes and mounts go into pods as they are, where Kubernetes has rules of its own."""
    affinity = job.values["affinity"]
    given: list[tuple[Any, str, Keys]] = [(affinity, "Affinity", ("affinity",))] if affinity else []
    given += [(item, _LISTS[key], (key, index)) for key in _LISTS for index, item in enumerate(job.values[key])]
    if not given:
        return
    from chartgen.kube.pod_rules import type_faults  # and Kubernetes' types with it

    for each in given:
        for fault in type_faults(*each):
            yield _claim(fault.at, fault.message, fault.hint)


def names_of_volumes(job: Job) -> Iterator[Claim]:
    """Volumes of a pod have names of their own: the chart's are taken, and so is every name that stands twice."""
    if not job.values["extraVolumes"]:
        return  # reading the slots takes as long as all other checks
    taken = {*_keys(job, "volumes.yaml"), "start", *job.values["storage"]}
    taken |= {"data-tmp"} if job.launcher.task == "data" else set()
    for index, volume in enumerate(job.values["extraVolumes"]):
        name = volume["name"]
        if name in taken:
            yield _claim(("extraVolumes", index, "name"), f"{name} is the name of another volume", "use another name")
        taken.add(name)


def mounts_of_volumes(job: Job) -> Iterator[Claim]:
    """What is mounted is a volume of the pod, at a path where nothing else is mounted."""
    if not job.values["extraVolumeMounts"]:
        return
    own = {*_keys(job, "volumes.yaml", always=True), "start", *_stored(job)}
    known = own | {volume["name"] for volume in job.values["extraVolumes"]}
    taken = {*_keys(job, "volumeMounts.yaml"), _START, *_stores(job)}
    for index, mount in enumerate(job.values["extraVolumeMounts"]):
        at, path = ("extraVolumeMounts", index), mount["mountPath"]
        if mount["name"] not in known:
            hint = did_you_mean(mount["name"], known) or "add it to extraVolumes"
            yield _claim((*at, "name"), f"{mount['name']} is no volume of the pod", hint)
        if path in taken:
            yield _claim((*at, "mountPath"), f"something else is mounted at {path}", "use another path")
        taken.add(path)


def propagation_of_mounts(job: Job) -> Iterator[Claim]:
    """Only a privileged container hands its mounts on to its machine."""
    for index, mount in enumerate(job.values["extraVolumeMounts"]):
        shared = mount.get("mountPropagation") == "Bidirectional"
        if shared and not _is_privileged(job):
            message = "Bidirectional is for privileged containers, and this one is not"
            yield _claim(("extraVolumeMounts", index, "mountPropagation"), message, "use HostToContainer or None")


def labels_of_the_chart(job: Job) -> Iterator[Claim]:
    """Charts find the pods of a run by labels that they set themselves; a name that stands twice is refused by Helm."""
    for key, own in _OWN.items():
        for name in job.values[key]:
            if name in own:
                yield _claim((key, name), "is set by the chart", "use another name")


def _claim(at: Keys, message: str, hint: str) -> Claim:
    return Claim(dotted(at), message, hint, at=at)


def _stores(job: Job) -> Iterator[str]:
    """Return the paths where the chart mounts storage."""
    yield from (f"/{role}" for role in job.values["storage"])
    yield from _MOUNT_PATH.findall(job.launcher.parts.get("mounts.yaml", ""))


def _stored(job: Job) -> Iterator[str]:
    """Return the volumes of storage: two roles on one claim share that of the first."""
    storage: dict[str, Any] = job.values["storage"]
    claims: set[str] = set()
    for role in sorted(storage):
        place, _, rest = storage[role]["from"].partition("://")
        claim = rest.partition("/")[0]
        if place != "pvc" or claim not in claims:
            yield role
        claims.update([claim] if place == "pvc" else ())


def _is_privileged(job: Job) -> bool:
    """Report whether a fragment makes the program privileged: always, or by the value that its block asks for."""
    found = [each for each in _segments(job, "securityContext.yaml") if "privileged: true" in each.text]
    asked = [(each.always, _CONDITION.match(each.text)) for each in found]
    # By a condition of another form it may be.
    return any(always or not match or _holds(job, match) for always, match in asked)


def _holds(job: Job, condition: re.Match[str]) -> bool:
    value: Any = job.values
    for key in condition["keys"].split("."):
        value = value[key]
    return bool(value == condition["value"] if condition["value"] else value)


def _keys(job: Job, slot: str, *, always: bool = False) -> set[str]:
    """Return what the fragments of the job's pods define in a slot; `always` leaves out what hangs on other values."""
    return {key for each in _segments(job, slot) if each.always or not always for key, _ in each.keys}


def _segments(job: Job, slot: str) -> list[Segment]:
    texts = [fragment.slots[slot] for fragment in job.target.fragments if slot in fragment.slots]
    return [each for text in texts if not (text.gpu_only and job.launcher.task == "data") for each in text.segments]


_ALL = ("train", "data", "test")
_VALIDATION = "kubernetes v1.36.3, pkg/apis/core/validation/validation.go"
PODS = (
    Check(parts_of_the_pod, _VALIDATION, tasks=_ALL),
    Check(names_of_volumes, _VALIDATION, tasks=_ALL),
    Check(mounts_of_volumes, _VALIDATION, tasks=_ALL),
    Check(propagation_of_mounts, _VALIDATION, tasks=_ALL),
    Check(labels_of_the_chart, "chartgen/library/workloads/common/templates/_pod.yaml", tasks=_ALL),
)
