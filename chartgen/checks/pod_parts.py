"""Parts of a pod that charts pass on unchanged: find faults that the API server rejects, or that prevent a start.

Kubernetes accepts a JobSet, a PyTorchJob or a Volcano Job with any pods, so no other check reports these faults.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from chartgen.checks.job import TASKS, Job
from chartgen.composer.privileges import volume_fault
from chartgen.composer.slots import Segment
from chartgen.errors import did_you_mean
from chartgen.findings import KeyProblem, rule, rules_in
from chartgen.helm.yaml import Keys, dotted

_START = "/etc/chartgen"
_CONDITION = re.compile(r'\{\{- if (?:eq )?\.Values\.(?P<keys>[A-Za-z.]+)(?: "(?P<value>\w+)")? \}\}\n')
_MOUNT_PATH = re.compile(r"^- mountPath: (\S+)$", re.MULTILINE)
_CONTAINERS = ("extraInitContainers", "extraContainers")
_LISTS = {"tolerations": "Toleration", "extraVolumes": "Volume", "extraVolumeMounts": "VolumeMount"}
_LISTS |= dict.fromkeys(_CONTAINERS, "Container")


_VALIDATION = "kubernetes v1.36.3, pkg/apis/core/validation/validation.go"


@rule(_VALIDATION, tasks=TASKS)
def parts_of_the_pod(job: Job) -> Iterator[KeyProblem]:
    """Affinity, tolerations, volumes and mounts pass into pods unchanged, and Kubernetes has its own rules for them."""
    affinity = job.values["affinity"]
    given: list[tuple[Any, str, Keys]] = [(affinity, "Affinity", ("affinity",))] if affinity else []
    given += [(item, _LISTS[key], (key, index)) for key in _LISTS for index, item in enumerate(job.values[key])]
    if not given:
        return
    from chartgen.kube.pod_rules import type_faults  # this imports Kubernetes' types

    for each in given:
        for fault in type_faults(*each):
            yield _claim(fault.at, fault.message, fault.hint)


@rule(_VALIDATION, tasks=TASKS)
def names_of_volumes(job: Job) -> Iterator[KeyProblem]:
    """Volumes of a pod have unique names: those of the chart are reserved, and a name must not be listed twice."""
    if not job.values["extraVolumes"]:
        return  # reading the slots takes as long as all other checks
    taken = {*_keys(job, "volumes.yaml"), "start", *job.values["storage"]}
    taken |= {"data-tmp"} if job.launcher.task == "data" else set()
    for index, volume in enumerate(job.values["extraVolumes"]):
        name = volume["name"]
        if name in taken:
            yield _claim(("extraVolumes", index, "name"), f"{name} is the name of another volume", "use another name")
        taken.add(name)


@rule(_VALIDATION, tasks=TASKS)
def names_of_containers(job: Job) -> Iterator[KeyProblem]:
    """Containers of a pod have unique names: those of the chart are reserved, and a name must not be listed twice."""
    given = list(_extra_containers(job))
    taken = {*_keys(job, "initContainers.yaml"), *_keys(job, "containers.yaml")} if given else set()
    taken |= {job.workload_kind.container, "mpimaster", "head", "submitter"}
    for at, container in given:
        name = container["name"]
        if name in taken:
            yield _claim((*at, "name"), f"{name} is the name of another container", "use another name")
        taken.add(name)


@rule(_VALIDATION, tasks=TASKS)
def mounts_of_containers(job: Job) -> Iterator[KeyProblem]:
    """The user's containers mount the user's volumes, or in kinds with equal pods alone also those of the chart."""
    known = {volume["name"] for volume in job.values["extraVolumes"]}
    if given := list(_extra_containers(job)):
        known |= set() if _has_other_pods(job) else {*_keys(job, "volumes.yaml", always=True), "start", *_stored(job)}
    for at, container in given:
        for index, mount in enumerate(container.get("volumeMounts") or []):
            if mount["name"] not in known:
                hint = did_you_mean(mount["name"], known) or "add it to extraVolumes"
                yield _claim((*at, "volumeMounts", index, "name"), f"a pod has no volume {mount['name']}", hint)


@rule(_VALIDATION, tasks=TASKS)
def mounts_of_volumes(job: Job) -> Iterator[KeyProblem]:
    """Each mount names a volume of the pod, at a path that has no other mount."""
    if not job.values["extraVolumeMounts"]:
        return
    own = {*_keys(job, "volumes.yaml", always=True), "start", *_stored(job)}
    known = own | {volume["name"] for volume in job.values["extraVolumes"]}
    taken = {*_keys(job, "volumeMounts.yaml"), _START, *_stores(job)}
    for index, mount in enumerate(job.values["extraVolumeMounts"]):
        at, path = ("extraVolumeMounts", index), mount["mountPath"]
        if mount["name"] not in known:
            hint = did_you_mean(mount["name"], known) or "add it to extraVolumes"
            yield _claim((*at, "name"), f"the pod has no volume {mount['name']}", hint)
        if path in taken:
            yield _claim((*at, "mountPath"), f"another volume is already mounted at {path}", "use another path")
        taken.add(path)


@rule("Kubernetes, Pod Security Standards (hostPath volumes)", tasks=TASKS)
def system_folders_of_volumes(job: Job) -> Iterator[KeyProblem]:
    """Volumes exclude the machine's system folders, such as / or /var/run; pods may read named files below /opt."""
    mounts = [*job.values["extraVolumeMounts"]]
    mounts += [mount for _, container in _extra_containers(job) for mount in container.get("volumeMounts") or []]
    writable = {mount["name"] for mount in mounts if mount.get("readOnly") is not True}
    for index, volume in enumerate(job.values["extraVolumes"]):
        source = volume.get("hostPath")
        if not isinstance(source, dict) or ".." in str(source.get("path")):
            continue  # not a path for Kubernetes either
        if fault := volume_fault(source, writable=volume["name"] in writable):
            yield _claim(("extraVolumes", index, "hostPath"), *fault)


@rule(_VALIDATION, tasks=TASKS)
def propagation_of_mounts(job: Job) -> Iterator[KeyProblem]:
    """Only a privileged container can propagate its mounts to its machine."""
    for index, mount in enumerate(job.values["extraVolumeMounts"]):
        shared = mount.get("mountPropagation") == "Bidirectional"
        if shared and not _is_privileged(job):
            message = "Bidirectional requires a privileged container"
            yield _claim(("extraVolumeMounts", index, "mountPropagation"), message, "use HostToContainer or None")


def _has_other_pods(job: Job) -> bool:
    """Report whether a run also has pods without storage: that of mpirun, or those of Ray's head and submitter."""
    return job.launcher.task != "data" and (job.workload_kind.extends == "mpi" or job.workload_kind.starts == "ray")


def _extra_containers(job: Job) -> Iterator[tuple[Keys, dict[str, Any]]]:
    yield from (((key, index), each) for key in _CONTAINERS for index, each in enumerate(job.values[key]))


def _claim(at: Keys, message: str, hint: str) -> KeyProblem:
    return KeyProblem(dotted(at), message, hint, at=at)


def _stores(job: Job) -> Iterator[str]:
    """Yield the paths where the chart mounts storage."""
    yield from (f"/{role}" for role in job.values["storage"])
    yield from _MOUNT_PATH.findall(job.launcher.parts.get("mounts.yaml", ""))


def _stored(job: Job) -> Iterator[str]:
    """Yield the volumes of storage: of two roles on one claim, the second shares the volume of the first."""
    storage: dict[str, Any] = job.values["storage"]
    claims: set[str] = set()
    for role in sorted(storage):
        place, _, rest = storage[role]["from"].partition("://")
        claim = rest.partition("/")[0]
        if place != "pvc" or claim not in claims:
            yield role
        claims.update([claim] if place == "pvc" else ())


def _is_privileged(job: Job) -> bool:
    """Report whether a fragment makes the program privileged: always, or by the value in its block's condition."""
    found = [segment for segment in _segments(job, "securityContext.yaml") if "privileged: true" in segment.text]
    conditions = [(segment.always, _CONDITION.match(segment.text)) for segment in found]
    # Conditions of other forms count as true.
    return any(always or not match or _is_met(job, match) for always, match in conditions)


def _is_met(job: Job, condition: re.Match[str]) -> bool:
    value: Any = job.values
    for key in condition["keys"].split("."):
        value = value[key]
    return bool(value == condition["value"] if condition["value"] else value)


def _keys(job: Job, slot: str, *, always: bool = False) -> set[str]:
    """Return the keys that the fragments of the job's pods define in a slot; with `always`, only unconditional ones."""
    return {key for segment in _segments(job, slot) if segment.always or not always for key, _ in segment.keys}


def _segments(job: Job, slot: str) -> list[Segment]:
    texts = [fragment.slots[slot] for fragment in job.target.fragments if slot in fragment.slots]
    return [each for text in texts if not (text.gpu_only and job.launcher.task == "data") for each in text.segments]


PODS = rules_in(globals())
