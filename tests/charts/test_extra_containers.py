"""Containers of the user's are in every pod of a run, and can do no more than what needs no reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from check_helpers import job_of, judge
from rendered import GPT3, chart, rendered, target

from chartgen.checks.job import Job
from chartgen.checks.pod_parts import PODS
from chartgen.checks.values import check_values, effective_values
from chartgen.errors import ChartgenError
from chartgen.helm.values import load_values
from chartgen.kube.manifest_walk import pods

SHIPPER = {"name": "log-shipper", "image": "example.com/fluent-bit:4", "restartPolicy": "Always"}
MOUNT = {"name": "logs", "mountPath": "/logs", "readOnly": True}
GIVEN: dict[str, Any] = {
    "extraInitContainers": [{**SHIPPER, "volumeMounts": [MOUNT]}],
    "extraContainers": [{"name": "probe", "image": "example.com/probe:1"}],
    "extraVolumes": [{"name": "logs", "emptyDir": {}}],
}
RAY = (
    "launcher=nemo-rl",
    "nodes=2",
    "queue.name=lab",
    "launchers.nemo-rl.model=/data/llama",
    "network.interface=infiniband",
)
VOLCANO = ("nodes=2", "queue.name=lab", "network.interface=infiniband")


@pytest.mark.helm
@pytest.mark.parametrize(
    ("name", "workload", "sets", "count"),
    [
        ("gke-a3mega", "jobset", (), 1),
        ("gke-a3mega", "pytorchjob", (), 1),
        ("gke-a3mega", "mpijob", (), 2),
        ("gke-a3mega", "jobset", ("launcher=download", "data.source=hf://org/set", "storage.data.readOnly=false"), 1),
        ("onprem-p8000", "rayjob", RAY, 3),
    ],
)
def test_every_pod_of_a_run_has_them(name: str, workload: str, sets: tuple[str, ...], count: int) -> None:
    words = tuple(f"{key}={json.dumps(value)}" for key, value in GIVEN.items())
    files = GPT3 if name == "gke-a3mega" else ()
    found = [
        pod.spec
        for thing in rendered(*sets, files=files, json=words, workload=workload, name=name)
        for pod in pods(thing)
    ]
    assert len(found) == count
    for spec in found:
        assert spec["initContainers"][-1] == GIVEN["extraInitContainers"][0]
        assert spec["containers"][-1] == GIVEN["extraContainers"][0]
        assert GIVEN["extraVolumes"][0] in spec["volumes"]


@pytest.mark.parametrize(
    ("context", "key"),
    [
        ({"privileged": True}, "privileged"),
        ({"allowPrivilegeEscalation": True}, "allowPrivilegeEscalation"),
        ({"procMount": "Unmasked"}, "procMount"),
        ({"seccompProfile": {"type": "Unconfined"}}, "seccompProfile.type"),
        ({"appArmorProfile": {"type": "Unconfined"}}, "appArmorProfile.type"),
        ({"capabilities": {"add": ["SYS_ADMIN"]}}, "capabilities.add"),
    ],
)
@pytest.mark.parametrize("part", ["extraInitContainers", "extraContainers"])
def test_no_value_gives_them_a_privilege(part: str, context: dict[str, Any], key: str) -> None:
    values = load_values(set_json=[json.dumps({part: [{**SHIPPER, "securityContext": context}]})])
    (problem,) = check_values(chart(), values)
    assert f"{part}[0].securityContext" in problem.message
    assert key.rpartition(".")[2] in problem.message


def said(values: dict[str, Any], workload: str = "") -> list[str]:
    given = load_values(set_json=[json.dumps({**GIVEN, **values})])
    job = job_of("gke-a3mega", given)
    judged = Job(effective_values(chart(), given), target(), workload) if workload else job
    return sorted(f"{claim.id} {claim.key}" for claim in judge(PODS, judged))


def test_names_and_mounts_are_those_of_a_pod() -> None:
    assert said({}) == said({}, "mpijob") == []
    workers = {"extraContainers": [{"name": "workload", "image": "a:1"}, {"name": "log-shipper", "image": "a:1"}]}
    assert said(workers) == [f"names-of-containers extraContainers[{index}].name" for index in (0, 1)]
    stored = {"extraContainers": [{"name": "a", "image": "a:1", "volumeMounts": [{**MOUNT, "name": "outputs"}]}]}
    assert said(stored) == []
    assert said(stored, "mpijob") == ["mounts-of-containers extraContainers[0].volumeMounts[0].name"]
    assert said({"extraContainers": [{"name": "a", "image": "a:1", "livenessProbe": {"periodSeconds": "x"}}]}) == [
        "parts-of-the-pod extraContainers[0].livenessProbe.periodSeconds"
    ]


@pytest.mark.helm
@pytest.mark.parametrize("read_only", [True, False])
def test_a_vendors_file_is_only_read(read_only: bool) -> None:
    volume = {"name": "logs", "hostPath": {"path": "/opt/vendor/topology.xml", "type": "File"}}
    shipper = {**SHIPPER, "volumeMounts": [{**MOUNT, "readOnly": read_only}]}
    values = {"extraInitContainers": [shipper], "extraVolumes": [volume], "extraContainers": []}
    words = tuple(f"{key}={json.dumps(value)}" for key, value in values.items())
    refusal = "system-folders-of-volumes extraVolumes[0].hostPath"
    assert said(values) == ([] if read_only else [refusal])
    if read_only:
        assert rendered(json=words)
    else:
        with pytest.raises(ChartgenError, match=r"extraVolumes\[0\]\.hostPath"):
            rendered(json=words)
