"""A storage scheme and a fabric of the user's own: sub-paths of a volume, roles that share one, claimed adapters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from answers import findings
from userlib import chartgen, composed, library

from chartgen.errors import ChartgenError
from chartgen.helm.manifests import objects, render
from chartgen.helm.yaml import Plain

VOLUMES = """\
{{- range $role, $store := .Values.storage }}
{{- if and (hasPrefix "s3x://" $store.from) (eq $role (include "<%= chart %>.storeVolume" (list $ $role))) }}
- name: {{ $role }}
  csi:
    driver: csi.example.com
    volumeAttributes:
      volume: {{ include "<%= chart %>.storeName" $store.from }}
      mountOptions: {{ $store.mountOptions | quote }}
{{- end }}
{{- end }}
"""
SCHEME = {"anyOf": [{"pattern": "^s3x://", "title": "s3x://volume/path"}]}


@pytest.mark.helm
def test_paths_are_sub_paths_of_a_volume_that_roles_with_equal_options_share(tmp_path: Path) -> None:
    schema = json.dumps({"definitions": {"store": {"properties": {"from": SCHEME}}}})
    ours = library(tmp_path, {"mine/volumes.yaml": VOLUMES, "mine/values.schema.json": schema})
    fragment = ours / "fragments/mine/fragment.yaml"
    fragment.write_text(f"{fragment.read_text()}provides: [store]\nsubPaths: [s3x]\n")
    options = "-o attr_timeout=120"
    data: dict[str, Plain] = {"from": "s3x://big/data/sets", "mountOptions": options}
    outputs: dict[str, Plain] = {"from": "s3x://big/out", "mountOptions": options}
    values: dict[str, Plain] = {"storage": {"data": data, "outputs": outputs, "scratch": {"from": "s3x://big/tmp"}}}
    (pod,) = (
        job["template"]["spec"]["template"]["spec"]
        for found in objects(render(composed(ours), "my-run", "default", values))
        if found["kind"] == "JobSet"
        for job in found["spec"]["replicatedJobs"]
    )
    volumes = {each["name"]: each["csi"]["volumeAttributes"] for each in pod["volumes"] if "csi" in each}
    assert volumes == {
        "data": {"volume": "big", "mountOptions": options},
        "scratch": {"volume": "big", "mountOptions": ""},
    }
    mounts = {each["mountPath"]: each for each in pod["containers"][0]["volumeMounts"]}
    found = {path: (mounts[path]["name"], mounts[path].get("subPath")) for path in ("/data", "/outputs", "/scratch")}
    assert found == {"/data": ("data", "data/sets"), "/outputs": ("data", "out"), "/scratch": ("scratch", "tmp")}
    with pytest.raises(ChartgenError, match=r"storage\.data\.from"):
        render(composed(ours), "my-run", "default", {"storage": {"data": {"from": "s3x://big/../x"}}})


def claiming(folder: Path, fabric: str) -> Path:
    """Write a library whose machines have a fabric with adapters by claims."""
    ours = library(folder, {"mine/env.yaml": "- name: RAILS\n  value: all\n"}, gpu_only=("mine",))
    fragment = ours / "fragments/mine/fragment.yaml"
    fragment.write_text(f"{fragment.read_text()}provides: [fabric]\n")
    target = ours / "targets/box.yaml"
    row = 'capacity: {nvidia.com/gpu: "8", cpu: "96", memory: 1Ti}'
    text = target.read_text().replace("mine]", "mine, rdma-claims]")
    target.write_text(text.replace(row, f"{row}\n    fabric: {fabric}"))
    return ours


@pytest.mark.helm
def test_a_fabric_of_ones_own_has_its_adapters_by_claims(tmp_path: Path) -> None:
    """It declares no value of its own for that."""
    ours = claiming(tmp_path, "{adapters: 6}")
    found = objects(render(composed(ours), "my-run", "default", {"network": {"deviceClass": "rail.example.com"}}))
    (template,) = (each for each in found if each["kind"] == "ResourceClaimTemplate")
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert (request["exactly"]["deviceClassName"], request["exactly"]["count"]) == ("rail.example.com", 6)


@pytest.mark.parametrize("fabric", ["{}", "{adapters: four}", "{adapter: 4}"])
def test_a_claim_of_no_adapters_is_rejected(fabric: str, tmp_path: Path) -> None:
    """Kubernetes makes 1 of a claim of 0 devices, and the run would leave the other adapters idle."""
    (only,) = findings(chartgen("check", "box", "--path", claiming(tmp_path, fabric), "--output", "json").stdout)
    assert (only["rule"], only["key"]) == ("claimed-adapters", "machineType")


def test_a_fabric_of_ones_own_offers_no_other_way_than_its_own(tmp_path: Path) -> None:
    """`annotation` is what the fragment of GKE does: here, pods would have no adapters at all."""
    ours = claiming(tmp_path, "{adapters: 6}")
    arguments = ("check", "box", "--path", ours, "--set", "network.mode=annotation", "--output", "json")
    (only,) = findings(chartgen(*arguments).stdout)
    assert (only["rule"], "network.mode" in only["message"]) == ("values-schema", True)
