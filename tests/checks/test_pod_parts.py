"""Parts of pods in values: `check` and a real API server agree on each, and both are told where they stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from check_helpers import job_of, judge
from rendered import chart

from chartgen.checks import check
from chartgen.checks.pod_parts import PODS
from chartgen.helm.values import load_values
from chartgen.helm.yaml import load_file

PARTS: Any = load_file(Path(__file__).parents[1] / "data" / "pod-parts.yaml").data
named = pytest.mark.parametrize("case", PARTS, ids=lambda case: json.dumps(case["value"]))


def values_of(case: dict[str, Any]) -> dict[str, Any]:
    return {case["part"]: case["value"] if case["part"] == "affinity" else [case["value"]]}


@named
def test_what_check_says_of_a_part(case: dict[str, Any]) -> None:
    values = load_values(set_json=[json.dumps(values_of(case))])
    found = [f"{said.key}: {said.message}; {said.hint}" for said in judge(PODS, job_of("gke-a3mega", values))]
    assert sorted(found) == sorted(f"{case['part']}{case[key]}" for key in ("says", "also") if key in case)


DOWNLOAD = {"launcher": "download", "data": {"source": "hf://org/set"}}
MLPERF = {
    "launcher": "mlperf-llama2-lora",
    "launchers": {"mlperf-llama2-lora": {"image": "example.com/lora:1"}},
    "model": {"hiddenSize": 8192, "attentionHeads": 64},
    "parallelism": {"tensor": 8},
    "precision": "fp8",
    "steps": 192,
    "checkpoint": {"enabled": False, "from": "/data/model"},
}
MOUNT = {"name": "cache", "mountPath": "/cache"}
BIDIRECTIONAL = "Bidirectional requires a privileged container"
VOLUME: dict[str, Any] = {"name": "cache", "emptyDir": {}}


@pytest.mark.parametrize(
    ("target", "changes", "told"),
    [
        ("gke-a3mega", {"extraVolumes": [VOLUME], "extraVolumeMounts": [MOUNT]}, []),
        ("gke-a3mega", {"extraVolumeMounts": [{**MOUNT, "name": "data"}]}, []),
        ("gke-a3mega", {"extraVolumeMounts": [{**MOUNT, "name": "shared-memory"}]}, []),
        (
            "gke-a3mega",
            {"extraVolumeMounts": [MOUNT]},
            ["mounts-of-volumes extraVolumeMounts[0].name: the pod has no volume cache"],
        ),
        (
            "gke-a3mega",
            # two roles on one claim share the volume of the first
            {"storage": {"scratch": {"from": "pvc://a"}, "data": {"from": "pvc://a/b"}}}
            | {"extraVolumeMounts": [{**MOUNT, "name": "scratch"}]},
            ["mounts-of-volumes extraVolumeMounts[0].name: the pod has no volume scratch"],
        ),
        (
            "gke-a3mega",
            {**DOWNLOAD, "extraVolumeMounts": [{**MOUNT, "name": "nccl-plugin"}]},
            ["mounts-of-volumes extraVolumeMounts[0].name: the pod has no volume nccl-plugin"],
        ),
        (
            "gke-a3mega",
            {"extraVolumeMounts": [{"name": "data", "mountPath": "/dev/shm"}]},
            ["mounts-of-volumes extraVolumeMounts[0].mountPath: another volume is already mounted at /dev/shm"],
        ),
        (
            "gke-a3mega",
            {**MLPERF, "extraVolumeMounts": [{"name": "data", "mountPath": "/ckpt"}]},
            ["mounts-of-volumes extraVolumeMounts[0].mountPath: another volume is already mounted at /ckpt"],
        ),
        (
            "gke-a3mega",
            {"extraVolumes": [VOLUME, {**VOLUME, "name": "sys"}, VOLUME]},
            [
                "names-of-volumes extraVolumes[1].name: sys is the name of another volume",
                "names-of-volumes extraVolumes[2].name: cache is the name of another volume",
            ],
        ),
        (
            "gke-a3mega",
            {"extraVolumeMounts": [{"name": "data", "mountPath": "/a", "mountPropagation": "Bidirectional"}]},
            [f"propagation-of-mounts extraVolumeMounts[0].mountPropagation: {BIDIRECTIONAL}"],
        ),
        (
            "gke-a3mega",
            {"network": {"hostNetwork": True}}
            | {"extraVolumeMounts": [{"name": "data", "mountPath": "/a", "mountPropagation": "Bidirectional"}]},
            [],
        ),
        (
            "oke-h100",
            {"extraVolumeMounts": [{"name": "data", "mountPath": "/a", "mountPropagation": "Bidirectional"}]},
            [],
        ),
        (
            "oke-h100",
            {"network": {"mode": "sriov"}}
            | {"extraVolumeMounts": [{"name": "data", "mountPath": "/a", "mountPropagation": "Bidirectional"}]},
            [f"propagation-of-mounts extraVolumeMounts[0].mountPropagation: {BIDIRECTIONAL}"],
        ),
    ],
    ids=str,
)
def test_parts_beside_the_charts_own(target: str, changes: dict[str, Any], told: list[str]) -> None:
    said = judge(PODS, job_of(target, load_values(set_json=[json.dumps(changes)])))
    assert [f"{each.id} {each.key}: {each.message}" for each in said] == told


def test_findings_stand_at_the_part_that_is_wrong(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        "tolerations:\n"
        "  - key: a\n"
        "    effect: Never\n"
        "  - value: b\n"
        "extraVolumes:\n"
        "  - {name: cache, emptyDir: {}, hostPath: {path: /a}}\n"
    )
    found = [each for each in check(chart(), load_values([own])) if each.problem.path == own]
    places = [(each.problem.line, each.problem.column, each.key) for each in found]
    assert places == [(3, 5, "tolerations[0].effect"), (4, 5, "tolerations[1].key"), (6, 5, "extraVolumes[0]")]


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ('podLabels={"a b": "c"}', 'podLabels is "a b", but must be: names such as rack or example.com/rack'),
        ('podLabels={"a": "b c"}', 'podLabels.a is "b c", but must be: at most 63 letters, digits, dashes'),
        ('nodeSelector={"/a": "b"}', 'nodeSelector is "/a", but must be: names such as rack or example.com/rack'),
        ('podAnnotations={"a b": ""}', 'podAnnotations is "a b", but must be: names such as rack or example.com/rack'),
        ('serviceAccount="a..b"', 'serviceAccount is "a..b", but must be: the name of a service account'),
        ('imagePullSecrets=["a", "a"]', "imagePullSecrets "),
        ('imagePullSecrets=["a.-b"]', 'imagePullSecrets[0] is "a.-b", but must be: the name of a Secret'),
        ('secretEnv={"A": {"secretName": "a", "key": "..b"}}', 'secretEnv.A.key is "..b", but must be: a key of'),
        ('topology.level="a//b"', 'topology.level is "a//b", but must be: names such as rack or example.com/rack'),
        (f'queue.name="{"a" * 64}"', "queue.name "),
        ('launchers.megatron-lm.resources.requests={"rack": "8"}', 'launchers.megatron-lm.resources.requests is "rac'),
        ("nodes=100001", "nodes must be a whole number from 1 to 100000, not 100001"),
        ("model.layers=1000001", "model.layers must be a whole number from 1 to 1000000, not 1000001"),
        ('affinity={"podAffinty": {}}', 'unknown key "podAffinty" in affinity'),
        ('affinity={"podAffinity": []}', "affinity.podAffinity must be "),
        ('extraVolumes=[{"name": 5}]', "extraVolumes[0].name must be text, not 5"),
        ('extraVolumeMounts=[{"name": "a", "mountPath": {}}]', "extraVolumeMounts[0].mountPath must be text"),
    ],
)
def test_names_and_numbers_of_the_api_are_in_the_schema(flag: str, told: str) -> None:
    (found,) = (each for each in check(chart(), load_values(set_json=[flag])) if each.rule == "values-schema")
    assert found.problem.message.startswith(told), found.problem.message


def test_the_master_of_mpirun_takes_no_devices() -> None:
    (found,) = check(chart(name="oke-h100"), load_values(set_json=['mpi.resources={"example.com/nic": "1"}']))
    assert found.rule == "values-schema"
    assert found.problem.message.startswith('mpi.resources is "example.com/nic", but must be: cpu, memory or ')
