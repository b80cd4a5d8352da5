"""What a cluster has for the runs of a target, and a site file that names it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from chartgen.composer.site_names import edit
from chartgen.composer.target import Target
from chartgen.kube import CLAIM, NODE, STORAGE_CLASS, Cluster, Kind, Object
from chartgen.kube.scheduling import why_unusable
from chartgen.releases.preflight.context import read_if_allowed
from chartgen.releases.preflight.kueue import newest_kind

# Clouds set the first; the GPU operator sets the second everywhere, by the driver's name of the model.
_TYPES = ("node.kubernetes.io/instance-type", "nvidia.com/gpu.product")
_CLAIM = "pvc://"


@dataclass(frozen=True)
class Survey:
    """Names in a cluster; None where you may not read them."""

    namespace: str
    queues: list[str] | None  # local queues of Kueue
    claims: list[str] | None  # claims for storage
    classes: list[str] | None  # storage classes
    machines: dict[str, int] | None  # usable machines by machine type of the target


def survey_site(cluster: Cluster, target: Target, namespace: str) -> Survey:
    """Return what a cluster has for the runs of a target in a namespace."""

    def names(kind: Kind) -> list[str] | None:
        space = namespace if kind.namespaced else ""
        found = read_if_allowed(lambda: cluster.list(kind, namespace=space, metadata_only=True))
        return None if found is None else sorted(item["metadata"]["name"] for item in found)

    nodes = read_if_allowed(lambda: cluster.list(NODE))
    found = cluster.judged(nodes or (), lambda node: "" if why_unusable(node) else _type_of(node, target))
    types = Counter(name for _, name in found if name)
    return Survey(
        namespace,
        names(newest_kind(cluster, "LocalQueue")),
        names(CLAIM),
        names(STORAGE_CLASS),
        None if nodes is None else dict(types.most_common()),
    )


def site_file(example: str, survey: Survey, target: Target) -> str:
    """Return a target's example of a site file with what the cluster has; what is not clear is listed in comments."""
    has_queues = any(fragment.name == "kueue" for fragment in target.fragments)

    def name(values: Object) -> None:
        """Name the queue, machines and claim if the cluster has a single one."""
        if has_queues and survey.queues and len(survey.queues) == 1:
            values.setdefault("queue", {})["name"] = survey.queues[0]
        if survey.machines:
            kind, count = next(iter(survey.machines.items()))
            values["machineType"] = kind
            if has_queues:
                values.setdefault("setup", {}).setdefault("quota", {})["nodes"] = count
        if survey.claims and len(survey.claims) == 1:
            _use_claim(values, survey.claims[0])

    lines = edit(example, name).splitlines(keepends=True)
    start = int(lines[0].startswith("#"))  # editors read the schema's name from the first line
    lines[start:start] = _comments(survey, has_queues=has_queues)
    return "".join(lines)


def _type_of(node: Object, target: Target) -> str:
    labels = node["metadata"].get("labels", {})
    by_type, by_product = (labels.get(name, "") for name in _TYPES)
    if by_type in target.machines:
        return str(by_type)
    same = (machine.name for machine in target.machines.values() if machine.labels.get(_TYPES[1]) == by_product != "")
    return next(same, "")


def _use_claim(values: Object, claim: str) -> None:
    """Name the only claim of a namespace wherever the example names one; the setup chart then creates none."""
    for store in values.get("storage", {}).values():
        if isinstance(store, dict) and str(store.get("from", "")).startswith(_CLAIM):
            _, slash, path = store["from"].removeprefix(_CLAIM).partition("/")
            store["from"] = f"{_CLAIM}{claim}{slash}{path}"
            values.get("setup", {}).pop("claims", None)


def _comments(survey: Survey, *, has_queues: bool) -> Iterator[str]:
    machines = survey.machines and [f"{name} ({count})" for name, count in survey.machines.items()]
    yield f"# What the cluster has for namespace {survey.namespace}:\n"
    rows = [("queues", survey.queues)] if has_queues else []
    for name, each in [*rows, ("machines", machines), ("claims", survey.claims), ("storage classes", survey.classes)]:
        yield f"#   {name}: {'you may not read them' if each is None else ', '.join(each) or 'none'}\n"
