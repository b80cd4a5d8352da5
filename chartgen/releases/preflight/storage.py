"""Checks of what the pods mount: claims, the CSI drivers of volumes, and outputs that another release writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chartgen.kube import CLAIM, CSI_DRIVER, STORAGE_CLASS, ClusterError, Kind, Object
from chartgen.kube.workloads import find_workers
from chartgen.releases.history import RevisionRecord, each_deployed, read_record
from chartgen.releases.preflight.context import Diagnosis, PreflightContext, failed, passed, warned
from chartgen.releases.preflight.setup_hint import setup_step

_ONE_MACHINE = {"ReadWriteOnce", "ReadWriteOncePod"}


def claims(context: PreflightContext) -> Iterator[Diagnosis]:
    """Every claim exists and is bound, or will be with its first pod; claims of the release itself are left out."""
    for name, count in _mounted(context).items():
        if not context.makes("PersistentVolumeClaim", name):
            yield _claim(context, name, count)


def _claim(context: PreflightContext, name: str, pods: int) -> Diagnosis:
    found = context.get(CLAIM, name)
    if found is None:
        text = f"no claim {name} in namespace {context.namespace}"
        return failed(text, f"{setup_step(context)} with setup.claims.{name}, or name another claim in storage")
    modes = set(found["spec"]["accessModes"])
    if pods > 1 and modes <= _ONE_MACHINE:
        text = f"claim {name} is {' and '.join(sorted(modes))}, which lets one machine in, not {pods}"
        return failed(text, "use a claim with ReadWriteMany on shared storage")
    phase = found.get("status", {}).get("phase", "Pending")
    if phase == "Bound":
        return passed(f"claim {name} is bound")
    return _unbound(context, name, phase, found)


def _unbound(context: PreflightContext, name: str, phase: str, claim: Object) -> Diagnosis:
    look = f"kubectl --namespace {context.namespace} describe pvc {name}"
    wanted = claim["spec"].get("storageClassName", "")
    kind = context.get(STORAGE_CLASS, wanted) if wanted else None
    if wanted and kind is None and not claim["spec"].get("volumeName"):
        text = f"claim {name} is {phase}: no storage class {wanted}"
        return failed(text, "create the class, or a volume for the claim")
    if kind and phase == "Pending" and kind.get("volumeBindingMode") == "WaitForFirstConsumer":
        return passed(f"claim {name} gets its volume with its first pod")
    if kind and phase == "Pending":
        # shared storage takes minutes to provision, and pods wait for it
        return warned(f"claim {name} is Pending: storage class {wanted} has not made its volume yet", look)
    return failed(f"claim {name} is {phase}: it has no volume", look)


def _mounted(context: PreflightContext) -> dict[str, int]:
    """Return the claims of all pods, and how many pods mount each."""
    found: dict[str, int] = {}
    for pods in context.pods:
        volumes: list[dict[str, Any]] = pods.spec.get("volumes", [])
        for name in {each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each}:
            found[name] = found.get(name, 0) + pods.count
    return found


_VOLUME = Kind("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
_NODES = Kind("storage.k8s.io/v1", "CSINode", "csinodes", namespaced=False)
_IN_TREE = "kubernetes.io/"  # provisioners of Kubernetes itself, which translates most to CSI drivers of other names
_INSTALL = "install the driver, or choose storage that the cluster has"


def storage_drivers(context: PreflightContext) -> Iterator[Diagnosis]:
    """The CSI drivers of the pods' volumes are installed.

    A volume in the pod needs a CSIDriver object with the mode Ephemeral; for others that object is optional (Kubernetes
    1.36, pkg/volume/csi/csi_plugin.go), and the machines list their drivers too.
    """
    volumes: list[Object] = [volume for pods in context.pods for volume in pods.spec.get("volumes") or ()]
    inline = {str(volume["csi"]["driver"]) for volume in volumes if volume.get("csi")}
    for name in sorted(inline):
        yield _inline(context, name)
    for name in sorted({*_provisioners(context, volumes)} - inline):
        listed = (driver["name"] for node in context.find(_NODES) for driver in node["spec"].get("drivers") or ())
        if context.get(CSI_DRIVER, name) is not None or name in listed:
            yield passed(f"CSI driver {name} is installed")
        else:
            text = f"no CSIDriver object and no machine has driver {name}, which the pods' claims name"
            yield warned(f"{text}: unless it needs none, the pods stay in ContainerCreating", _INSTALL)


def _inline(context: PreflightContext, name: str) -> Diagnosis:
    found = context.get(CSI_DRIVER, name)
    if found is None:
        return failed(f"no CSIDriver {name}: the pods stay in ContainerCreating", _INSTALL)
    if "Ephemeral" not in (found["spec"].get("volumeLifecycleModes") or ()):
        text = f"CSIDriver {name} does not mount volumes of pods: volumeLifecycleModes lacks Ephemeral"
        return failed(text, "use a claim on this driver (pvc://), or a version of the driver that has this mode")
    return passed(f"CSI driver {name} is installed")


def _provisioners(context: PreflightContext, volumes: list[Object]) -> Iterator[str]:
    """Yield the drivers of the volumes behind claims, or of the storage classes that will make them."""
    for claim in filter(None, (_claim_spec(context, volume) for volume in volumes)):
        bound = context.get(_VOLUME, str(claim["volumeName"])) if claim.get("volumeName") else None
        if bound:
            name = (bound["spec"].get("csi") or {}).get("driver", "")
        else:
            wanted = str(claim.get("storageClassName") or "")
            made = context.made(STORAGE_CLASS.name, wanted) or (context.get(STORAGE_CLASS, wanted) if wanted else None)
            name = (made or {}).get("provisioner", "")
        if name and not name.startswith(_IN_TREE):
            yield str(name)


def _claim_spec(context: PreflightContext, volume: Object) -> dict[str, Any] | None:
    """Return the spec of the claim of a volume: the pod's own, the release's or the cluster's; None without one."""
    if template := (volume.get("ephemeral") or {}).get("volumeClaimTemplate"):
        found: dict[str, Any] = template["spec"]
        return found
    name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
    claim = (context.made(CLAIM.name, name) or context.get(CLAIM, name)) if name else None
    return claim.get("spec") if claim else None


# Volumes that belong to a single pod (kubernetes, api/core/v1/types.go).
_OF_A_POD = {"emptyDir", "ephemeral"}


def outputs_of_others(context: PreflightContext) -> Iterator[Diagnosis]:
    """No other release saves to the same directory of the same storage."""
    own = _outputs(context.objects, context.namespace)
    if own is None:
        return
    # a claim belongs to a namespace, other storage is cluster-wide
    everywhere = "persistentVolumeClaim" not in own[1]
    try:
        yield from _compared(context, own, "" if everywhere else context.namespace)
    except ClusterError as error:
        if error.denied is None or not everywhere:
            raise
        text = f"not checked whether releases of other namespaces save to {own[0]}: no permission to list secrets"
        yield warned(text, "run chartgen doctor as an account that may list them in all namespaces")
        yield from _compared(context, own, context.namespace)


def _compared(context: PreflightContext, own: tuple[str, Object], namespace: str) -> Iterator[Diagnosis]:
    kept = each_deployed(context.cluster, namespace)
    for _, (release, other) in context.cluster.judged(kept, lambda item: _outputs_of(context, read_record(item))):
        if other == own:
            text = f"{release} saves to {own[0]} of the same storage"
            yield warned(text, "set another run.name, unless this release is to continue that one's training")


def _outputs_of(context: PreflightContext, record: RevisionRecord) -> tuple[str, tuple[str, Object] | None]:
    """Return a release, and where it saves; None for this one."""
    is_own = (record.name, record.namespace) == (context.release, context.namespace)
    other = None if is_own else _outputs(record.run_objects, record.namespace)
    return f"release {record.name} of namespace {record.namespace}", other


def _outputs(objects: list[Object], namespace: str) -> tuple[str, dict[str, Any]] | None:
    """Return the directory of a run's checkpoints and its volume; None when no other pod can have that volume."""
    workers = find_workers(objects)
    directory = workers.env.get("CHECKPOINT_DIRECTORY", "") if workers else ""
    volume = workers.volume(directory) if workers and directory else {}
    source = {key: value for key, value in volume.items() if key != "name"}
    if not source or _OF_A_POD & set(source):
        return None
    return directory, source | ({"namespace": namespace} if "persistentVolumeClaim" in source else {})
