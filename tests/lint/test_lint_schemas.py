"""The schemas that lint ships: what they find, and that kubeconform, told the same schemas, finds the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rendered import VALUES

from chartgen.data.api_schemas import custom_kinds, kind_schema, kubernetes_versions, whole_groups
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import load_values
from chartgen.helm.yaml import load_file
from chartgen.linter import find_presets
from chartgen.linter.api_schemas import kinds_are_known, kinds_are_served, objects_fit_their_schema
from chartgen.rehearsal import engines

SCHEMAS = VALUES.parent / "chartgen" / "data"
CHARTS = [Chart.read(path.parent) for path in sorted(VALUES.parent.glob("charts/*/Chart.yaml"))]
JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "a", "labels": None},
    "spec": {
        "parallelism": 2,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "a", "resources": {"limits": {"cpu": 4, "memory": "1Gi"}}}],
                "volumes": [{"name": "a", "emptyDir": {"sizeLimit": "1Gi"}}],
            }
        },
    },
}
JOBSET: dict[str, Any] = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "a"},
    "spec": {"replicatedJobs": [{"name": "a", "template": {"spec": JOB["spec"]}}]},
}
DOMAIN: dict[str, Any] = {
    "apiVersion": "resource.nvidia.com/v1beta1",
    "kind": "ComputeDomain",
    "metadata": {"name": "a"},
    "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "a"}, "allocationMode": "All"}},
}
NETWORK: dict[str, Any] = {
    "apiVersion": "k8s.cni.cncf.io/v1",
    "kind": "NetworkAttachmentDefinition",
    "metadata": {"name": "a", "annotations": {"k8s.v1.cni.cncf.io/resourceName": "example.com/nic"}},
    "spec": {"config": "{}"},
}


def changed(thing: dict[str, Any], at: list[str | int], value: Any) -> dict[str, Any]:
    copy: Any = json.loads(json.dumps(thing))
    node = copy
    for key in at[:-1]:
        node = node[key]
    node[at[-1]] = value
    assert isinstance(copy, dict)
    return copy


def told(thing: dict[str, Any]) -> list[str]:
    return [f"{found.message}; {found.hint}" for found in objects_fit_their_schema(thing, "1.37")]


@pytest.mark.parametrize(
    ("thing", "at", "value", "message"),
    [
        (JOB, ["spec", "paralelism"], 2, "spec.paralelism: is not a field of the API; did you mean parallelism?"),
        (JOB, ["spec", "parallelism"], "2", "spec.parallelism: must be an integer, not the string '2'; "),
        (JOB, ["spec", "suspend"], "no", "spec.suspend: must be a boolean, not the string 'no'; "),
        (JOB, ["spec", "template"], None, "spec: lacks the field template; add it"),
        (JOB, ["metadata", "lables"], {}, "metadata.lables: is not a field of the API; did you mean labels?"),
        (
            JOB,
            ["metadata", "labels"],
            {"a": 1},
            "metadata.labels.a: must be a string, not the number 1; use the value of a label",
        ),
        (JOBSET, ["spec", "network"], [], "spec.network: must be an object, not a list; "),
        (
            JOBSET,
            ["metadata", "annotation"],
            {},
            "metadata.annotation: is not a field of the API; did you mean annotations or generation?",
        ),
        (
            JOBSET,
            ["spec", "failurePolicy"],
            {"restartStrategy": "Later"},
            "spec.failurePolicy.restartStrategy: is 'Later'; use Recreate or BlockingRecreate",
        ),
        (DOMAIN, ["spec", "nodes"], 2, "spec.nodes: is not a field of the API; did you mean numNodes?"),
        (DOMAIN, ["spec", "channel"], None, "spec: lacks the field channel; add it"),
        (
            DOMAIN,
            ["spec", "channel", "allocationMode"],
            "One",
            "spec.channel.allocationMode: is 'One'; use All or Single",
        ),
        (NETWORK, ["spec", "config"], {}, "spec.config: must be a string, not an object; "),
        (NETWORK, ["spec", "conf"], "", "spec.conf: is not a field of the API; did you mean config?"),
        (NETWORK, ["speck"], {}, "speck: is not a field of the API; did you mean spec?"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_faults(thing: dict[str, Any], at: list[str | int], value: Any, message: str) -> None:
    assert told(thing) == []
    found = told(changed(thing, at, value))
    assert len(found) == 1
    assert found[0].startswith(message)


@pytest.mark.parametrize("thing", [JOB, JOBSET, DOMAIN, NETWORK], ids=lambda thing: thing["kind"])
def test_kinds_that_are_known(thing: dict[str, Any]) -> None:
    assert list(kinds_are_known(thing, "1.37")) == []


def test_the_api_server_sets_the_status_of_its_own_kinds() -> None:
    thing = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a"}, "status": {}}
    assert not any("status" in each for each in told(thing))
    assert any("spec" in each for each in told({**thing, "spec": {}}))


@pytest.mark.parametrize(
    ("kind", "thing"),
    [
        ("apps/v1 StatefulSet", {"spec": {"selector": {}, "template": {}}}),
        ("rbac.authorization.k8s.io/v1 ClusterRoleBinding", {"roleRef": {"kind": "ClusterRole", "name": "a"}}),
        ("networking.k8s.io/v1 NetworkPolicy", {"spec": {}}),
    ],
)
def test_an_old_schema_asks_for_what_no_api_server_asked_for(kind: str, thing: dict[str, Any]) -> None:
    version, name = kind.split()
    made = {"apiVersion": version, "kind": name, "metadata": {"name": "a"}, **thing}
    assert list(objects_fit_their_schema(made, "1.29")) == []
    assert list(objects_fit_their_schema({**made, next(iter(thing)): {"wrong": 1}}, "1.29"))


def test_a_kind_that_the_newest_kubernetes_lacks_is_asked_for_its_fields() -> None:
    old = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1beta3", "kind": "FlowSchema", "spec": {}}
    assert [fault.message for fault in objects_fit_their_schema(old, "1.29")]


def test_only_a_group_whose_kinds_are_all_known_serves_no_other() -> None:
    whole = whole_groups("1.37")
    groups = {name.rpartition("/")[0] for name in custom_kinds()}
    assert {each.partition("/")[0] for each in groups} - whole == {
        *("kubeflow.org", "ray.io", "monitoring.coreos.com", "networking.gke.io", "k8s.cni.cncf.io"),
        *("resource.nvidia.com", "config.volcano.sh", "shard.volcano.sh"),
    }
    for version in (*groups, "apps/v1", "extensions/v1beta1", "example.com/v1"):
        other = {"apiVersion": version, "kind": "Widget"}
        served = list(kinds_are_served(other, "1.37"))
        assert bool(served) is (version.partition("/")[0] in whole), version
        assert bool(served) is not bool(list(kinds_are_known(other, "1.37")))


def test_a_version_that_is_not_served_is_looked_for_in_the_template() -> None:
    job = {"apiVersion": "batch/v9", "kind": "Job"}
    (found,) = kinds_are_served(job, "1.37")
    assert found.is_satisfied
    assert found.is_satisfied("apiVersion: batch/v9 # of a test\n")
    assert found.is_satisfied(json.dumps(job, indent=1))
    assert found.is_satisfied(json.dumps(job))
    assert not found.is_satisfied("apiVersion: batch/v99\n")
    assert not found.is_satisfied("# apiVersion: batch/v9\n")
    assert not found.is_satisfied('image: "batch/v9"\n')


def test_every_pack_names_its_source_and_its_version() -> None:
    table = load_file(SCHEMAS / "schemas.yaml").data
    assert isinstance(table, dict)
    entries: Any = table["schemas"]
    packs = {path.name.partition(".json")[0] for path in (SCHEMAS / "schemas").iterdir()}
    assert {entry["name"] for entry in entries} == packs
    assert all(entry["version"].startswith("v") for entry in entries)
    assert all("module" in entry or len(entry["commit"]) == 40 for entry in entries)


@pytest.mark.parametrize(
    ("wanted", "versions"),
    [
        (">=1.29.0-0", ["1.29", "1.32", "1.34", "1.37"]),
        (">= 1.31.0 < 1.35.0", ["1.32", "1.34"]),
        ("", ["1.29", "1.32", "1.34", "1.37"]),
        (">=1.99.0-0", ["1.29", "1.32", "1.34", "1.37"]),
    ],
)
def test_kubernetes_versions_of_a_chart(wanted: str, versions: list[str]) -> None:
    assert kubernetes_versions(wanted) == versions


def closed(schema: Any, definitions: dict[str, Any]) -> Any:
    """Write a schema as kubeconform takes it: references inside the file, objects that take only what they name."""
    if isinstance(schema, list):
        return [closed(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value, definitions) for key, value in schema.items()}
    if isinstance(made.get("$ref"), str):
        made["$ref"] = f"#/definitions/{made['$ref']}"
    if isinstance(made.get("properties"), dict) and not made.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    if isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    return made


def write_schema(name: str, folder: Path) -> None:
    """Write the schema of a kind, with Kubernetes' own metadata, into a file for kubeconform."""
    schema, definitions = kind_schema(name, "1.37")
    assert schema, name
    whole = closed(schema, definitions)
    whole["definitions"] = closed(definitions, definitions)
    if "metadata" in whole.get("properties", {}) and "$ref" not in whole["properties"]["metadata"]:
        whole["properties"]["metadata"] = {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    group, _, kind = name.rpartition("/")
    (folder / f"{kind.lower()}-{group.replace('/', '-')}.json").write_text(json.dumps(whole))


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
def test_kubeconform_agrees_that_our_charts_are_clean(tmp_path: Path) -> None:
    made: list[dict[str, Any]] = []
    for chart in CHARTS:
        presets = list(find_presets(chart.name.removesuffix("-setup"), VALUES).values())
        for files in ([], presets[0]):
            made += objects(render(chart, "my-run", "default", load_values(files).data))
    for name in {f"{thing['apiVersion']}/{thing['kind']}" for thing in made}:
        write_schema(name, tmp_path)
    place = f"{tmp_path}/{{{{ .ResourceKind }}}}-{{{{ .Group }}}}-{{{{ .ResourceAPIVersion }}}}.json"
    core = f"{tmp_path}/{{{{ .ResourceKind }}}}-{{{{ .ResourceAPIVersion }}}}.json"
    argv = [
        str(engines.require("kubeconform")),
        "-strict",
        "-summary",
        "-schema-location",
        place,
        "-schema-location",
        core,
    ]
    sound = "\n---\n".join(map(json.dumps, made))
    ran = subprocess.run(argv, input=sound, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    assert f"{len(made)} resources found" in ran.stdout
    assert "Invalid: 0, Errors: 0, Skipped: 0" in ran.stdout
    wrong = json.dumps({**made[0], "speck": {}})
    assert subprocess.run(argv, input=wrong, capture_output=True, text=True, check=False).returncode == 1
