"""Checks of the claims that the pods mount: they exist, are bound, and allow access from all machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chartgen.kube import CLAIM, STORAGE_CLASS, Object
from chartgen.releases.preflight.context import PreflightContext
from chartgen.releases.preflight.result import Diagnosis, failed, passed, warned
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
        return failed(
            f"claim {name} is {phase}: no storage class {wanted}", "create the class, or a volume for the claim"
        )
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
