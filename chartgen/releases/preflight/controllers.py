"""Checks of the controllers of the release's kinds: APIs are served, controllers run, webhooks answer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chartgen.data.compatibility import lock, within
from chartgen.kube import LOCAL_QUEUE, ClusterError, Kind, Object
from chartgen.kube.controllers import INSTALLED, KUEUE, Controller, group_of
from chartgen.kube.run_kinds import api_kinds, find, kind_of, lacks_runtime
from chartgen.kube.workloads import used_api_versions
from chartgen.releases.preflight.context import Diagnosis, PreflightContext, failed, passed, read_if_allowed, warned
from chartgen.releases.preflight.kueue import change_of_configuration, frameworks, kueue_config, look_at_configuration

_DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
_HOOKS = tuple(
    Kind("admissionregistration.k8s.io/v1", name, f"{name.lower()}s", namespaced=False)
    for name in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
)
_IMAGE = re.compile(r"(?:[^@]*/)?(?P<name>[^:@/]+)(?::(?P<tag>[^@/]+))?(?:@.*)?")
# Prefix that chartgen.kube adds to a message of the server.
_OUR_WORDS = re.compile(r"^.*?(?:refused \S+ \S+|refuses access): ")
_SERVICE = re.compile(r"https://(?P<service>[-\w]+)\.(?P<namespace>[-\w]+)\.svc")


def api_versions(context: PreflightContext) -> Iterator[Diagnosis]:
    """The API server knows every kind of the manifests, in the version in which they are written."""
    kinds = {(item["apiVersion"], item["kind"]) for item in context.objects}
    unknown = [kind for kind in sorted(kinds) if not context.cluster.serves(Kind(*kind, plural=""))]
    for api_version, name in unknown:
        yield failed(f"the cluster does not serve {name} in {api_version}", _way_to_serve(context, api_version, name))
    if not unknown:
        shown = ", ".join(f"{name} {api_version}" for api_version, name in sorted(kinds) if group_of(api_version))
        yield passed(f"all kinds are served: {shown}" if shown else "all kinds are Kubernetes' own")


def controllers(context: PreflightContext) -> Iterator[Diagnosis]:
    """The controllers of these kinds run."""
    for controller in needed_controllers(context):
        yield _alive(context, controller)


def admission(context: PreflightContext) -> Iterator[Diagnosis]:
    """The API server accepts the run in a dry run: all its webhooks answer, and none rejects it."""
    for kind, item in _samples(context):
        answer, name = context.trial(kind, item), f"{item['kind']} {item['metadata']['name']}"
        if not isinstance(answer, ClusterError) or _cannot_be_tried(answer):
            yield passed(f"{name} is taken (tried without effect)")
        elif "failed calling webhook" in str(answer):
            yield failed(f"{name}: {reason_of(answer)}", _look_at(answer))
        elif answer.status != 404:  # a missing namespace has its own check
            yield failed(f"{name} is refused: {reason_of(answer)}", "change the values that the message names")


def queue_integration(context: PreflightContext) -> Iterator[Diagnosis]:
    """Kueue manages runs of this kind; otherwise they bypass the queue, and take machines that other runs wait for."""
    kind, run = served_kind(context), context.run
    if not (context.queue and run and kind):
        return
    answer = context.trial(kind, run)
    if isinstance(answer, ClusterError):
        # `admission` reports other rejections
        yield from [_configured(context, run)] if _cannot_be_tried(answer) else []
        return
    if find(answer["spec"], kind_of(run).suspend):
        yield passed(f"Kueue suspends each {run['kind']} with a queue until it is admitted")
    else:
        yield _passed_by(context, run)


def _configured(context: PreflightContext, run: Object) -> Diagnosis:
    """Check Kueue's configuration, where a dry run is impossible."""
    found = kueue_config(context)
    if found is None:
        text = f"not checked whether Kueue suspends a {run['kind']}: this one cannot be tried"
        return warned(f"{text}, and Kueue's configuration cannot be read", look_at_configuration())
    if _framework(run) in frameworks(found):
        return passed(f"Kueue's configuration lists {_framework(run)}")
    return _passed_by(context, run)


def _passed_by(context: PreflightContext, run: Object) -> Diagnosis:
    text = f"Kueue does not suspend a {run['kind']}, so queue {context.queue} has no effect"
    return failed(text, change_of_configuration(f"add {_framework(run)} to integrations.frameworks"))


def _cannot_be_tried(answer: ClusterError) -> bool:
    """Report whether a run exists, and has passed all webhooks, or lacks the runtime that its release creates first."""
    return answer.status == 409 or lacks_runtime(str(answer))


def _framework(run: Object) -> str:
    return f"{group_of(run['apiVersion'])}/{run['kind'].lower()}"


def needed_controllers(context: PreflightContext) -> list[Controller]:
    """Return the controllers of the release's kinds; without a release, those of all kinds that the cluster serves."""
    if context.chart is None:
        known = [kind for kind in (LOCAL_QUEUE, *api_kinds()) if context.cluster.serves(kind)]
        return [controller for controller in INSTALLED if any(controller.serves(kind.api_version) for kind in known)]
    apis = used_api_versions(context.objects)
    serving = [controller for controller in INSTALLED if any(map(controller.serves, apis))]
    used = {*serving, *(controller.through for controller in serving), *([KUEUE] if context.queue else [])}
    return [each for each in INSTALLED if each in used]


def kueue_version(context: PreflightContext) -> str:
    """Return Kueue's version from the tag of its image; empty when that is unknown."""
    tags = [tag for deployment in _deployments(context, KUEUE) or () for _, tag in _images(deployment)]
    return next((tag for tag in tags if re.match(r"v?\d+\.\d", tag)), "")


def served_kind(context: PreflightContext) -> Kind | None:
    """Return the run's kind as the server serves it; None when it does not, which `api_versions` reports."""
    return _kind(context, context.run) if context.run else None


def _kind(context: PreflightContext, item: Object) -> Kind | None:
    api_version, name = item["apiVersion"], item["kind"]
    served = context.cluster.serves(Kind(api_version, name, plural=""))
    return context.cluster.kind(api_version, name) if served else None


def _way_to_serve(context: PreflightContext, api_version: str, name: str) -> str:
    group = group_of(api_version)
    rows = [row["api"] for row in lock()["apis"] if group_of(row["api"]) == group]
    served = [api for api in rows if context.cluster.serves(Kind(api, name, plural=""))]
    if served:
        return f"use setup.kueueVersion={served[-1].rpartition('/')[2]}, which it serves"
    owner = next((controller for controller in INSTALLED if controller.serves(api_version)), None)
    return f"install {owner.name}: {owner.install}" if owner else f"install the CRD of {name}"


def _samples(context: PreflightContext) -> Iterator[tuple[Kind, Object]]:
    """Yield objects to test the controllers' webhooks with: the run, or one object of each of their kinds."""
    found = {
        item["kind"]: item
        for controller in needed_controllers(context)
        for item in context.objects
        if controller.serves(item["apiVersion"])
    }
    for item in [context.run] if context.run else found.values():
        if kind := _kind(context, item):
            yield kind, item


def _alive(context: PreflightContext, controller: Controller) -> Diagnosis:
    deployments = _deployments(context, controller)
    for deployment in deployments or ():
        if not deployment.get("status", {}).get("readyReplicas"):
            name, wanted = deployment["metadata"]["name"], deployment["spec"].get("replicas", 1)
            text = f"{controller.name} does not run: Deployment {name} has 0 of {wanted} pods ready"
            return failed(text, f"kubectl --namespace {controller.namespace} describe deployment {name}")
    if deployments:
        version = next((tag for deployment in deployments for _, tag in _images(deployment) if tag), "")
        if version and not within({"from": controller.since}, version):
            text = f"{controller.name} {version} runs; the charts need {controller.since} or newer"
            return failed(text, f"upgrade it: {controller.install}")
        return passed(" ".join(filter(None, (controller.name, version, "runs"))))
    if any(controller.name.lower() in name for name in _hooks(context)):
        # `admission` reports webhooks that do not answer
        return passed(f"{controller.name} runs outside namespace {controller.namespace}: its webhooks are there")
    if deployments is None:
        text = f"not checked whether {controller.name} runs: no permission to list deployments"
        return warned(text, f"kubectl --namespace {controller.namespace} get deployments")
    text = f"{controller.name} is not installed: no Deployment in {controller.namespace}, no webhook"
    return warned(text, f"install it: {controller.install}")


def _deployments(context: PreflightContext, controller: Controller) -> list[Object] | None:
    """Return the controller's Deployments; None without the permission to list them."""
    found = read_if_allowed(lambda: context.find(_DEPLOYMENT, namespace=controller.namespace))
    if found is None:
        return None
    return [each for each in found if any(name in controller.images for name, _ in _images(each))]


def _images(deployment: Object) -> list[tuple[str, str]]:
    images = [container["image"] for container in deployment["spec"]["template"]["spec"]["containers"]]
    matches = [match for image in images if (match := _IMAGE.fullmatch(image))]
    return [(match["name"], match["tag"] or "") for match in matches]


def _hooks(context: PreflightContext) -> list[str]:
    found = [read_if_allowed(lambda kind=kind: context.find(kind)) or [] for kind in _HOOKS]  # type: ignore[misc]
    return [item["metadata"]["name"] for items in found for item in items]


def reason_of(error: ClusterError) -> str:
    """Return the server's original message."""
    return _OUR_WORDS.sub("", error.problems[0].message).rstrip(";")


def _look_at(error: ClusterError) -> str:
    match = _SERVICE.search(str(error))
    return f"kubectl --namespace {match['namespace']} get pods,endpointslices" if match else "start that controller"
