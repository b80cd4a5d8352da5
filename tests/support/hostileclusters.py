"""Answers of an API server as a stranger or a tenant would have them: of a small cluster, with a few changes."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import manifests
from caged import ROOT
from mutators import ODD, TEXT, Files, mutated, twisted

from chartgen.helm.chart import Chart
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.values import load_values
from chartgen.helm.yaml import load
from chartgen.kube import kinds
from chartgen.kube.kinds import Kind
from chartgen.kube.run_kinds import api_kinds
from chartgen.releases.lock import lease_name

RELEASE, SPACE, THEIRS = "my-run", "ml", "theirs"
_QUEUE = "a3-mega"
_LOG = b"iteration 1/ 2 | elapsed time per iteration (ms): 2.0 |\n"
_AT = "2026-11-24T06:00:00Z"
_QUEUED = (kinds.WORKLOAD, kinds.LOCAL_QUEUE, kinds.CLUSTER_QUEUE)
_KINDS = (
    *(*api_kinds(), *_QUEUED, kinds.POD_GROUP, kinds.TRAINING_RUNTIME, kinds.CRD, kinds.STORAGE_CLASS, kinds.LEASE),
    *(kinds.POD, kinds.EVENT, kinds.SECRET, kinds.CONFIG_MAP, kinds.NODE, kinds.CLAIM, kinds.NAMESPACE),
    *(Kind("kueue.x-k8s.io/v1beta2", "ResourceFlavor", "resourceflavors", namespaced=False),),
    *(Kind("v1", "ServiceAccount", "serviceaccounts"), Kind("v1", "ResourceQuota", "resourcequotas")),
)
_TENANTS = (kinds.POD, kinds.SECRET, kinds.JOB, kinds.CLAIM, kinds.EVENT, kinds.WORKLOAD)
_DOCTOR = ["doctor", "gke-a3mega", RELEASE, "-f", "v.yaml"]
_SAID = ("helm-version", "permissions", "machines-free", "pod-admission")  # of this cluster, from first to last
COMMANDS = [
    *(["status", RELEASE], ["status", "-A"], ["status", RELEASE, "--output", "json"], ["history", RELEASE]),
    *(["logs", RELEASE, "--tail", "3"], ["metrics", RELEASE], ["doctor"], _DOCTOR, [*_DOCTOR, "--output", "json"]),
    ["init", "gke-a3mega", "--from-cluster", "--no-ask", "--to", "{out}/site.yaml"],
    ["top", "-A", "--count", "1", "--output", "json"],
    ["wait", RELEASE, "--for", "queued", "--timeout", "1s"],
    ["upgrade", "gke-a3mega", RELEASE, "-f", "v.yaml", "--dry-run", "--force"],
]


def _named(name: str, space: str = SPACE, **parts: Any) -> dict[str, Any]:
    labels = {kinds.INSTANCE_LABEL: RELEASE, "batch.kubernetes.io/job-completion-index": name[-1:]}
    metadata = {"name": name, "namespace": space, "uid": f"{space}-{name}", "creationTimestamp": _AT, "labels": labels}
    return {"metadata": metadata, **parts}


def _conditions(**states: str) -> list[dict[str, str]]:
    return [
        {"type": name, "status": state, "reason": "Because", "message": "of a test", "lastTransitionTime": _AT}
        for name, state in states.items()
    ]


def _pod(number: int, space: str = SPACE) -> dict[str, Any]:
    template = manifests.job(RELEASE, 2)["spec"]["template"]
    names = [each["name"] for each in template["spec"]["containers"]]
    state = {"running": {"startedAt": _AT}} if number else {"terminated": {"exitCode": 1, "finishedAt": _AT}}
    statuses = [{"name": name, "image": "x", "restartCount": number, "state": state} for name in names]
    status = {"phase": "Running" if number else "Failed", "containerStatuses": statuses}
    found = _named(f"{RELEASE}-workers-{number}", space)
    found["metadata"]["ownerReferences"] = [{"kind": "Job", "name": RELEASE, "uid": f"{SPACE}-{RELEASE}"}]
    return {
        **found,
        "spec": {**template["spec"], "nodeName": "node-1"},
        "status": {**status, "conditions": _conditions(Ready="True")},
    }


def _record(space: str, run: dict[str, Any]) -> dict[str, Any]:
    """Return what Helm keeps of a release of a chart of this repository, with another run."""
    chart = Chart.read(ROOT / "charts" / "gke-a3mega")
    annotations = {"chartgen/target": "gke-a3mega"}
    parts = {
        "metadata": {"name": chart.name, "version": "0.1.0", "annotations": annotations},
        "templates": [{"name": "templates/x.yaml", "data": "eA=="}],
        "values": load(chart.files["values.yaml"], "values.yaml").data,
        "schema": base64.b64encode(chart.files[SCHEMA_FILE].encode()).decode(),
    }
    info = {"status": "deployed", "last_deployed": _AT, "description": "x"}
    head = f"apiVersion: {run['apiVersion']}\nkind: {run['kind']}\nmetadata:\n  name: {RELEASE}\n"
    manifest = f"---\n{head}spec: {json.dumps(run['spec'])}\n"
    values = json.loads(_values())
    whole = {"name": RELEASE, "namespace": space, "version": 1, "info": info, "chart": parts}
    return {**whole, "manifest": manifest, "config": values}


def _secret(space: str, content: bytes) -> dict[str, Any]:
    found = _named(f"sh.helm.release.v1.{RELEASE}.v1", space)
    found["metadata"]["labels"] = {"owner": "helm", "name": RELEASE, "status": "deployed", "version": "1"}
    packed = base64.b64encode(base64.b64encode(gzip.compress(content, 1, mtime=0))).decode()
    return {**found, "data": {"release": packed}}


def _node(number: int) -> dict[str, Any]:
    pool = manifests.pool("a", 2)
    labels = {"node.kubernetes.io/instance-type": "a3-megagpu-8g", "kubernetes.io/hostname": f"node-{number}"}
    status = {"allocatable": dict(pool.capacity), "conditions": _conditions(Ready="True")}
    return {"metadata": {"name": f"node-{number}", "labels": labels}, "spec": {"taints": []}, "status": status}


@cache
def _cluster() -> dict[str, list[dict[str, Any]]]:
    """Return the objects of a small cluster, by the path of their kind without a namespace."""
    run = manifests.jobset(RELEASE, 2, namespace=SPACE, queue=_QUEUE)
    run = {
        **run,
        "metadata": {**run["metadata"], **_named(RELEASE)["metadata"]},
        "status": {"restarts": 1, "conditions": _conditions(Suspended="False")},
    }
    run["metadata"]["labels"][kinds.QUEUE_LABEL] = _QUEUE
    run["metadata"]["annotations"] = {"meta.helm.sh/release-name": RELEASE, "meta.helm.sh/release-namespace": SPACE}
    about = {"kind": "Pod", "name": f"{RELEASE}-workers-0", "uid": "x"}
    event: dict[str, Any] = {
        "involvedObject": about,
        "reason": "Evicted",
        "message": "to node-1",
        "type": "Warning",
        "lastTimestamp": _AT,
    }
    workload = _named(
        "w", spec={"queueName": _QUEUE, "priority": 0}, status={"conditions": _conditions(QuotaReserved="False")}
    )
    workload["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": RELEASE, "uid": f"{SPACE}-{RELEASE}"}]
    flavor, queue, local = manifests.queue(_QUEUE, 32, SPACE, topology=False)
    queue["status"] = {"conditions": _conditions(Active="True")}
    notes = {"chartgen/notes": json.dumps({"brokenOn": ["node-1"]})}
    lease = _named(lease_name(RELEASE), spec={"holderIdentity": "x", "leaseDurationSeconds": 15})
    lease["metadata"].update(annotations=notes, resourceVersion="1")
    records = [_secret(space, json.dumps(_record(space, run)).encode()) for space in (SPACE, THEIRS)]
    found = {
        kinds.POD: [*map(_pod, (0, 1)), _pod(1, THEIRS)],
        kinds.JOBSET: [run],
        kinds.JOB: [_named("other", THEIRS, **{key: manifests.job("other", 2)[key] for key in ("spec",)})],
        kinds.EVENT: [_named(f"e{number}", **event) for number in range(2)],
        kinds.SECRET: records,
        kinds.NODE: [_node(1), _node(2)],
        kinds.CLAIM: [_named("outputs", spec={"storageClassName": "x"}, status={"phase": "Bound"})],
        kinds.WORKLOAD: [workload],
        kinds.LOCAL_QUEUE: [local],
        kinds.CLUSTER_QUEUE: [queue],
        _KINDS[-3]: [flavor],
        kinds.LEASE: [lease],
        kinds.NAMESPACE: [{"metadata": {"name": SPACE, "labels": {}}}],
        kinds.STORAGE_CLASS: [{"metadata": {"name": "x"}, "provisioner": "y"}],
    }
    return {kind.path(): found.get(kind, []) for kind in _KINDS}


def _served() -> Iterator[tuple[str, Any]]:
    """Yield the answers about kinds and permissions, by their paths."""
    yield "version", {"gitVersion": "v1.36.3"}
    groups: list[dict[str, Any]] = []
    for version in {kind.api_version for kind in _KINDS}:
        own = [kind for kind in _KINDS if kind.api_version == version]
        entries = [{"kind": each.name, "name": each.plural, "namespaced": each.namespaced} for each in own]
        yield f"{'apis' if '/' in version else 'api'}/{version}", {"resources": entries}
        listed = [
            {
                "resource": each.plural,
                "responseKind": {"kind": each.name},
                "scope": "Namespaced" if each.namespaced else "Cluster",
            }
            for each in own
        ]
        group, _, number = version.rpartition("/")
        if group:
            groups.append({"metadata": {"name": group}, "versions": [{"version": number, "resources": listed}]})
    yield "apis", {"kind": "APIGroupDiscoveryList", "items": groups}
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    answer = {"metadata": {"name": "x"}, "status": {"resourceRules": [rule], "allowed": True}}
    for name in ("selfsubjectrulesreviews", "selfsubjectaccessreviews"):
        yield f"apis/authorization.k8s.io/v1/{name}", answer


def _paths(objects: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the answers for all lists and objects, by their paths."""
    found = dict(_served())
    for kind in _KINDS:
        items = objects[kind.path()]
        for space in ("", SPACE, THEIRS) if kind.namespaced else ("",):
            own = [each for each in items if not space or _space(each) == space]
            found[kind.path(space)] = {"kind": f"{kind.name}List", "metadata": {}, "items": own}
            if own and kind == kinds.JOBSET:  # a dry run is answered at the same path
                found[kind.path(space)] |= {key: own[0][key] for key in ("metadata", "spec") if key in own[0]}
            names = {each["metadata"]["name"]: each for each in own if _is_named(each)}
            found.update({kind.path(space, name): each for name, each in names.items() if space or not kind.namespaced})
    return found


def _space(item: Any) -> Any:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return metadata.get("namespace") if isinstance(metadata, dict) else SPACE


def _is_named(item: Any) -> bool:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def invent(made: Files, rng: Random) -> tuple[list[str], list[str]]:
    """Put the answers of a cluster into an input; return a command that reads them, and how they were made."""
    way = rng.choice(["tenant", "tenant", "object", "answer", "bytes"])
    objects = deepcopy(_cluster())
    if way in ("tenant", "object"):
        kind = rng.choice(_TENANTS if way == "tenant" else [each for each in _KINDS if objects[each.path()]])
        if objects[kind.path()]:
            _change(objects[kind.path()], rng, tenants=way == "tenant", is_record=kind == kinds.SECRET)
    answers = _paths(objects)
    texts = {path: json.dumps(answer).encode() for path, answer in answers.items()}
    texts |= {f"{kinds.POD.path(SPACE, f'{RELEASE}-workers-{number}')}/log": _LOG * 3 for number in (0, 1)}
    if way in ("answer", "bytes"):
        path = rng.choice(sorted(texts))
        if way == "answer" and path in answers:
            texts[path] = json.dumps(twisted(answers[path], rng, ODD)).encode()
        else:
            texts[path], _ = mutated(texts[path], rng, list(texts.values()), TEXT)
    made.files |= {f"answers/{quote(path, safe='')}": text for path, text in texts.items()}
    made.files["v.yaml"] = _values()
    return rng.choice(COMMANDS), [way]


@cache
def _values() -> bytes:
    folder = ROOT / "values"
    names = ("gpt3-5b.yaml", "gke-a3mega/gpt3-5b.yaml", "site.gke-a3mega.example.yaml")
    return json.dumps(load_values([folder / name for name in names]).data).encode()


def _change(items: list[Any], rng: Random, *, tenants: bool, is_record: bool) -> None:
    """Change an object, of another namespace where a tenant does it: its metadata is the API server's."""
    at = len(items) - 1 if tenants else rng.randrange(len(items))
    item = items[at]
    if is_record and rng.random() < 0.7:
        space = item["metadata"]["namespace"]
        content = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(item["data"]["release"]))))
        text = json.dumps(twisted(content, rng, ODD)).encode()
        if rng.random() < 0.3:
            text, _ = mutated(text, rng, [text], TEXT)
        items[at] = _secret(space, text)
    elif tenants:
        body = twisted({key: value for key, value in item.items() if key != "metadata"}, rng, ODD)
        items[at] = {**(body if isinstance(body, dict) else {}), "metadata": item["metadata"]}
    else:
        items[at] = twisted(item, rng, ODD)


def silenced(argv: list[str], ways: list[str], out: str) -> list[str]:
    """Report the checks of a doctor that a tenant has kept from saying anything of another namespace."""
    if ways != ["tenant"] or argv[: len(_DOCTOR)] != _DOCTOR:
        return []
    return [f"silent: doctor says nothing of {name}" for name in _SAID if name not in out]


def serves(folder: Path) -> Callable[[str], bytes | None]:
    """Return what answers a path from the files of an input."""

    def answer(path: str) -> bytes | None:
        file = folder / "answers" / quote(path.partition("?")[0], safe="")
        return file.read_bytes() if file.is_file() else None

    return answer
