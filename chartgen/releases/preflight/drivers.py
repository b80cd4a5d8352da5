"""Check of the CSI drivers behind the pods' volumes: without its driver a volume is never mounted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chartgen.kube import CLAIM, CSI_DRIVER, STORAGE_CLASS, Kind, Object
from chartgen.releases.preflight.context import PreflightContext
from chartgen.releases.preflight.result import Diagnosis, failed, passed, warned

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
        if _is_installed(context, name):
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


def _is_installed(context: PreflightContext, name: str) -> bool:
    listed = (driver["name"] for node in context.find(_NODES) for driver in node["spec"].get("drivers") or ())
    return context.get(CSI_DRIVER, name) is not None or name in listed


def _provisioners(context: PreflightContext, volumes: list[Object]) -> Iterator[str]:
    """Yield the drivers of the volumes behind claims, or of the storage classes that will make them."""
    for claim in filter(None, (_claim_spec(context, volume) for volume in volumes)):
        bound = context.get(_VOLUME, str(claim["volumeName"])) if claim.get("volumeName") else None
        if bound:
            name = ((bound["spec"].get("csi")) or {}).get("driver", "")
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
