"""Check that Kueue knows the device classes of a run: since 0.18 it does not admit runs with unknown ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chartgen.data.compatibility import lock, within
from chartgen.kube import Kind, Object
from chartgen.releases.preflight.context import Diagnosis, PreflightContext, failed, passed, read_if_allowed, warned
from chartgen.releases.preflight.controllers import kueue_version
from chartgen.releases.preflight.kueue import (
    change_of_configuration,
    kueue_config,
    look_at_configuration,
    mapped_classes,
    resource_groups,
)
from chartgen.releases.preflight.setup_hint import setup_step

_TEMPLATES = [
    Kind(f"resource.k8s.io/{version}", "ResourceClaimTemplate", "resourceclaimtemplates")
    for version in ("v1", "v1beta2", "v1beta1")
]
# Device class in a ComputeDomain's template, made later by its controller (NVIDIA/k8s-dra-driver-gpu v25.8, README.md).
_CHANNEL = "compute-domain-default-channel.nvidia.com"


def queue_device_classes(context: PreflightContext) -> Iterator[Diagnosis]:
    """Kueue maps the device classes that the run claims to resources of the queue; it never admits unmapped ones."""
    names = dict.fromkeys(
        str(claim["resourceClaimTemplateName"])
        for pods in context.pods
        for claim in pods.spec.get("resourceClaims") or ()
        if claim.get("resourceClaimTemplateName")
    )
    version = kueue_version(context)
    if not (context.queue and names):
        return
    if version and not any(within(row, version) for row in lock()["deviceClasses"]):
        yield passed(f"Kueue {version} ignores claims of devices")
        return
    for name in names:
        requests = _requests(context, name)
        classes = dict.fromkeys(str(each["deviceClassName"]) for each in requests if each.get("deviceClassName"))
        if refused := sorted(set(map(_uncountable, requests)) - {""}):
            text = f"Kueue admits no run with claim template {name}, whose requests have {' and '.join(refused)}"
            yield failed(text, "request a number of devices: exactly, with allocationMode ExactCount and count")
        else:
            yield from _judged(context, name, list(classes))


def _judged(context: PreflightContext, name: str, classes: list[str]) -> Iterator[Diagnosis]:
    found = kueue_config(context)
    if not classes or found is None:
        why = "Kueue's configuration cannot be read" if classes else "the template cannot be read"
        text = f"not checked whether Kueue maps the device classes of claim template {name}: {why}"
        yield warned(text, look_at_configuration() if classes else f"kubectl get resourceclaimtemplate {name}")
        return
    mapped = mapped_classes(found)
    covered = {resource for group in resource_groups(context) for resource in group["coveredResources"]}
    for each in classes:
        if each not in mapped:
            text = f"Kueue does not map device class {each}, and admits no run that claims it"
            yield failed(text, change_of_configuration(f"add {each} to resources.deviceClassMappings"))
        elif mapped[each] not in covered:
            text = f"Kueue counts device class {each} as {mapped[each]}, which queue {context.queue} does not cover"
            yield failed(text, f"add {mapped[each]} to setup.quota.resources, and {setup_step(context)}")
        else:
            yield passed(f"Kueue counts device class {each} as {mapped[each]}, which queue {context.queue} covers")


def _requests(context: PreflightContext, name: str) -> list[dict[str, Any]]:
    """Return the requests of a template, in the form of v1beta1 and of `exactly`; empty when it cannot be read."""
    for item in context.objects:
        spec: dict[str, Any] = item.get("spec") or {}
        if item["kind"] == "ComputeDomain" and _channel_of(spec) == name:
            return [{"deviceClassName": _CHANNEL}]
        if item["kind"] == "ResourceClaimTemplate" and item["metadata"]["name"] == name:
            return _requested(item)
    for kind in _TEMPLATES:
        found = read_if_allowed(lambda kind=kind: context.get(kind, name)) if context.cluster.serves(kind) else None  # type: ignore[misc]
        if found:
            return _requested(found)
    return []


def _channel_of(spec: dict[str, Any]) -> str:
    return str(((spec.get("channel") or {}).get("resourceClaimTemplate") or {}).get("name", ""))


def _requested(template: Object) -> list[dict[str, Any]]:
    # v1 and v1beta2 have these fields below `exactly`, v1beta1 one level higher
    requests = ((template["spec"].get("spec") or {}).get("devices") or {}).get("requests") or ()
    return [request.get("exactly") or request for request in requests]


def _uncountable(request: dict[str, Any]) -> str:
    """Return what Kueue cannot count in a request, if anything (kubernetes-sigs/kueue v0.19.2, pkg/dra/claims.go)."""
    if "firstAvailable" in request:
        return "firstAvailable"
    if request.get("adminAccess"):
        return "adminAccess"
    return "allocationMode All" if request.get("allocationMode") == "All" else ""
