"""Composition: fragments fill the skeleton of a workload kind, and their values and schemas become one of each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from published_schemas import brief, published_schemas
from rendered import security
from userlib import composed, library

from chartgen.composer.assembly import compose, compose_setup
from chartgen.composer.launcher import check_part, load_launcher
from chartgen.composer.library import BUILTIN, open_library
from chartgen.composer.slots import SLOTS
from chartgen.composer.target import load_target
from chartgen.composer.values import value_rows
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.schema import check_sound, validate_schema
from chartgen.helm.values import coalesce
from chartgen.helm.yaml import load, require_map

TARGETS = [path.stem for path in sorted((BUILTIN / "targets").glob("*.yaml"))]
DISK = "- name: disk\n  hostPath:\n    path: /mnt/disk\n"


@cache
def charts() -> list[Chart]:
    """Every chart of chartgen's own targets."""
    targets = [load_target(name) for name in TARGETS]
    return [chart for target in targets for chart in (compose(target), compose_setup(target)) if chart]


def rendered(chart: Chart, **values: Any) -> list[dict[str, Any]]:
    return objects(render(chart, "my-run", "default", values))


def job(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The object that runs the pods, whichever kind it is."""
    (only,) = (item for item in found if item["kind"] in ("JobSet", "Job"))
    return only


def pod(found: list[dict[str, Any]]) -> dict[str, Any]:
    item = job(found)
    if item["kind"] == "JobSet":
        item = item["spec"]["replicatedJobs"][0]["template"]
    template: dict[str, Any] = item["spec"]["template"]
    return template


def pod_template(chart: Chart) -> str:
    return "".join(
        chart.files.get(f"templates/_{name}.tpl", "") for name in ("pod", "env", "volumes", "initContainers")
    )


# -- the chart as a whole


def test_files_of_a_chart() -> None:
    for chart in charts():
        needed = {"Chart.yaml", "LICENSE", ".helmignore", "README.md", "values.yaml", "values.schema.json"}
        assert needed | {"templates/NOTES.txt"} <= chart.files.keys()
        assert list(chart.files) == sorted(chart.files)
        for path, text in chart.files.items():
            assert text.endswith("\n"), path
            assert not text.endswith("\n\n"), path
            assert "<%" not in text, path
            assert "\t" not in text, path


def test_two_builds_are_identical() -> None:
    for first in charts():
        target = load_target(first.name.removesuffix("-setup"))
        second = compose_setup(target) if first.name.endswith("-setup") else compose(target)
        assert second
        assert second == first
        assert list(second.files) == list(first.files)


def test_a_users_folder_leaves_no_trace_of_its_place(tmp_path: Path) -> None:
    charts = [composed(library(tmp_path / name, {"mine/volumes.yaml": DISK})) for name in ("here", "there")]
    assert charts[0] == charts[1]
    assert not [path for path, text in charts[0].files.items() if str(tmp_path) in text]


def test_every_value_is_described() -> None:
    published = published_schemas(charts())
    for chart in charts():
        text = chart.files["values.yaml"]
        table = list(value_rows(text, load(text, "values.yaml")))
        assert [row.key for row in table if not row.meaning] == []
        schema = json.loads(published[f"{chart.name}.values.schema.json"])
        for row in table:
            node, shared = schema, False
            for key in row.keys:
                if "properties" not in node and "additionalProperties" in node:
                    shared = True  # a map with free keys, such as resources
                    break
                assert key in node["properties"], row.key
                node = node["properties"][key]
                shared = shared or "$ref" in node
                node = schema["definitions"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
            # what several values share has a meaning for each of them, which only values.yaml can tell
            assert shared or row.keys[0] == "storage" or node["description"] == brief(row.meaning)


def test_readme_lists_every_value() -> None:
    for chart in charts():
        if not chart.name.endswith("-setup"):
            section = chart.files["README.md"].partition("- All keys, ")[2].partition("\n\n")[0]
            listed = re.findall("`([^`]+)`", section)[1:]
            assert listed == list(require_map(load(chart.files["values.yaml"], "values.yaml"), "the values"))


def test_schema_is_closed_sound_and_self_contained() -> None:
    for chart in charts():
        text = chart.files["values.schema.json"]
        schema = json.loads(text)
        assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
        assert check_sound(schema) == []
        assert set(re.findall(r'"\$ref": "([^"]*)"', text)) <= {
            f"#/definitions/{name}" for name in schema["definitions"]
        }
        assert '"format"' not in text
        assert schema["properties"]["global"]["type"] == "object"
        for path, node in object_schemas(schema):
            assert node.get("additionalProperties") is not None or node.get("propertyNames") or path in FREE, path


# What is Kubernetes' own, or a program's own, to say.
FREE = {"global", "affinity", "tolerations", "extraVolumes", "extraVolumeMounts"}


def object_schemas(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Walk the schemas of objects whose keys are named."""
    if isinstance(node, dict):
        if "properties" in node and "if" not in path:
            yield path, node
        for key, child in node.items():
            if key not in ("if", "then", "else", "not", "allOf", "anyOf", "oneOf", "dependencies"):
                yield from object_schemas(child, f"{path}.{key}".removeprefix("."))


def test_schema_accepts_the_charts_own_defaults() -> None:
    for chart in charts():
        schema = json.loads(chart.files["values.schema.json"])
        defaults = require_map(load(chart.files["values.yaml"], "values.yaml"), "values.yaml")
        assert validate_schema(coalesce(defaults, {}), schema, lambda keys: (".".join(map(str, keys)), 0, 0)) == []
        assert list(Draft7Validator(schema).iter_errors(coalesce(defaults, {}))) == []


# -- workload kinds and slots


@pytest.mark.helm
def test_same_fragments_fill_the_other_skeleton() -> None:
    target = load_target("gke-a3mega")
    jobset, indexed = compose(target), compose(target, "job")
    assert (jobset.name, indexed.name) == ("gke-a3mega", "gke-a3mega-job")
    first, second = rendered(jobset), rendered(indexed)
    assert (job(first)["kind"], job(second)["kind"]) == ("JobSet", "Job")
    pods = [pod(first)["spec"], pod(second)["spec"]]
    for name in ("tolerations", "nodeSelector", "initContainers", "volumes"):
        same = [
            json.dumps(spec[name]).replace(job(found)["metadata"]["name"], "RUN")
            for spec, found in zip(pods, (first, second), strict=True)
        ]
        assert same[0] == same[1], name
    mounts = [spec["containers"][0]["volumeMounts"] for spec in pods]
    assert mounts[0] == mounts[1]


def test_own_workload_kind_asked_for_by_name_is_the_same_chart() -> None:
    target = load_target("gke-a3mega")
    assert compose(target, target.workload) == compose(target)


LF = "\n"
AFFINITY = """\
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions: [{key: x, operator: Exists}]
"""
REFUSE_13 = """\
{{- if eq .Values.steps 13.0 }}
{{- $_ := set $check "problems" (append $check.problems "steps: not 13") }}
{{- end }}
"""
EVERY_SLOT = {
    "volumes.yaml": DISK,
    "initContainers.yaml": "- name: prepare\n  image: example.com/prepare:1\n",
    "containers.yaml": "- name: sidecar\n  image: example.com/sidecar:1\n",
    "resourceClaims.yaml": "- name: fabric\n  resourceClaimTemplateName: fabric\n",
    "tolerations.yaml": "- key: mine\n  operator: Exists\n",
    "affinity.yaml": AFFINITY,
    "nodeSelector.yaml": "mine: node-selector\n",
    "podAnnotations.yaml": "mine: pod-annotation\n",
    "podLabels.yaml": "mine: pod-label\n",
    "podSpec.yaml": "hostIPC: true\n",
    "env.yaml": "- name: MINE\n  value: variable\n",
    "volumeMounts.yaml": "- name: disk\n  mountPath: /mnt/disk\n",
    "resourceLimits.yaml": 'example.com/nic: "8"\n',
    "securityContext.yaml": "runAsUser: 7\n",
    "beforeLaunch.sh": "echo before-launch\n",
    "beforeRank.sh": "echo before-rank\n",
    "labels.yaml": "mine: label\n",
    "annotations.yaml": "mine: annotation\n",
    "workloadSpec.yaml": "managedBy: example.com/controller\n",
    "validate.tpl": REFUSE_13,
    "helpers.tpl": '{{- define "<%= chart %>.mine" -}}\nhelped\n{{- end }}\n',
}
EVERY_FIELD = {
    "pod.yaml": f"""\
metadata:
  labels:
    mine: pod-label
  annotations:
    mine: pod-annotation
spec:
  volumes:
  {DISK.replace(LF, LF + "  ")}
  hostIPC: true
  initContainers:
    - name: prepare
      image: example.com/prepare:1
  containers:
    - name: sidecar
      image: example.com/sidecar:1
  resourceClaims:
    - name: fabric
      resourceClaimTemplateName: fabric
  tolerations:
    - key: mine
      operator: Exists
  affinity:
    {AFFINITY.replace(LF, LF + "    ")}
  nodeSelector:
    mine: node-selector
""",
    "container.yaml": """\
env:
  - name: MINE
    value: variable
volumeMounts:
  - name: disk
    mountPath: /mnt/disk
resources:
  limits:
    example.com/nic: "8"
securityContext:
  runAsUser: 7
""",
    "object.yaml": """\
metadata:
  labels:
    mine: label
  annotations:
    mine: annotation
spec:
  managedBy: example.com/controller
""",
}
MANIFEST = (
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ include "<%= chart %>.run" . }}-mine\n'
    'data:\n  word: {{ include "<%= chart %>.mine" . }}\n'
)


def test_fields_and_files_of_the_earlier_form_make_one_chart(tmp_path: Path) -> None:
    earlier = composed(library(tmp_path / "earlier", {f"mine/{slot}": text for slot, text in EVERY_SLOT.items()}))
    others = {name: text for name, text in EVERY_SLOT.items() if not SLOTS[name].file}
    files = {f"mine/{name}": text for name, text in {**EVERY_FIELD, **others}.items()}
    assert composed(library(tmp_path / "fields", files)).files == earlier.files


@pytest.mark.helm
@pytest.mark.parametrize("workload", ["jobset", "job"])
def test_every_slot_lands_in_its_field(workload: str, tmp_path: Path) -> None:
    assert EVERY_SLOT.keys() == SLOTS.keys()
    files = {f"mine/{slot}": text for slot, text in EVERY_SLOT.items()} | {"mine/manifests/mine.yaml": MANIFEST}
    found = rendered(composed(library(tmp_path, files), workload=workload))
    item, template = job(found), pod(found)
    spec = template["spec"]
    program, sidecar = spec["containers"]
    assert {"name": "disk", "hostPath": {"path": "/mnt/disk"}} in spec["volumes"]
    assert [one["name"] for one in spec["initContainers"]] == ["prepare"]
    assert sidecar["name"] == "sidecar"
    assert spec["resourceClaims"] == [{"name": "fabric", "resourceClaimTemplateName": "fabric"}]
    assert program["resources"]["claims"] == [{"name": "fabric"}]
    assert {"key": "mine", "operator": "Exists"} in spec["tolerations"]
    assert spec["affinity"]["nodeAffinity"] == load(AFFINITY, "x").data["nodeAffinity"]  # type: ignore[index,call-overload]
    assert spec["affinity"]["podAntiAffinity"], "the chart's own rule stays"
    assert spec["nodeSelector"]["mine"] == "node-selector"
    assert template["metadata"]["annotations"]["mine"] == "pod-annotation"
    assert template["metadata"]["labels"]["mine"] == "pod-label"
    assert spec["hostIPC"] is True
    assert {"name": "MINE", "value": "variable"} in program["env"]
    assert {"name": "disk", "mountPath": "/mnt/disk"} in program["volumeMounts"]
    assert (
        program["resources"]["limits"]["example.com/nic"] == program["resources"]["requests"]["example.com/nic"] == "8"
    )
    assert program["securityContext"] == {**security(), "runAsUser": 7}
    (script,) = (item["data"]["start.sh"] for item in found if "start.sh" in item.get("data", {}))
    assert "\necho before-launch\n" in script
    (rank,) = (item["data"]["rank.sh"] for item in found if "rank.sh" in item.get("data", {}))
    assert "\necho before-rank\n" in rank
    assert item["metadata"]["labels"]["mine"] == "label"
    assert item["metadata"]["annotations"]["mine"] == "annotation"
    assert item["spec"]["managedBy"] == "example.com/controller"
    assert [one["data"] for one in found if one["metadata"]["name"].endswith("-mine")] == [{"word": "helped"}]


@pytest.mark.helm
def test_a_fragments_validation_stops_helm(tmp_path: Path) -> None:
    chart = composed(library(tmp_path, {"mine/validate.tpl": EVERY_SLOT["validate.tpl"]}))
    with pytest.raises(Exception, match=r"^steps: not 13$"):
        rendered(chart, steps=13)


def test_order_is_the_targets_list(tmp_path: Path) -> None:
    files = {f"{name}/volumes.yaml": DISK.replace("disk", name) for name in ("a", "b", "c")}
    for order in (("c", "a", "b"), ("b", "c", "a")):
        text = pod_template(composed(library(tmp_path, files, *order)))
        assert re.findall(r"- name: ([abc])$", text, re.MULTILINE) == list(order)


@pytest.mark.helm
def test_equal_definitions_collapse(tmp_path: Path) -> None:
    files = {"a/volumes.yaml": DISK, "b/volumes.yaml": "- name: disk\n  hostPath: {path: /mnt/disk}\n"}
    found = rendered(composed(library(tmp_path, files, "a", "b")))
    assert [volume["name"] for volume in pod(found)["spec"]["volumes"]].count("disk") == 1


def test_what_is_for_gpus_is_guarded_and_the_rest_is_not(tmp_path: Path) -> None:
    files = {f"{name}/volumes.yaml": DISK.replace("disk", name) for name in ("always", "gpu", "more")}
    folder = library(tmp_path, files, "always", "gpu", "more", gpu_only=("gpu", "more"))
    guard = "{{- if .Run.gpu }}"

    def marks() -> list[str]:
        volumes = composed(folder).files["templates/_volumes.tpl"]
        return re.findall(rf"- name: (?:always|gpu|more)$|{re.escape(guard)}", volumes, re.MULTILINE)

    # all programs of the chart have GPUs
    assert marks() == ["- name: always", "- name: gpu", "- name: more"]
    target = folder / "targets/box.yaml"
    target.write_text(target.read_text().replace("[nemo-1]", "[nemo-1, download]"))
    assert marks() == ["- name: always", guard, "- name: gpu", "- name: more"]


def test_a_volume_of_both_kinds_of_fragments_is_always_there(tmp_path: Path) -> None:
    files = {"gpu/volumes.yaml": DISK, "always/volumes.yaml": DISK}
    text = pod_template(composed(library(tmp_path, files, "gpu", "always", gpu_only=("gpu",))))
    assert ".Run.gpu" not in text.partition("  volumes:\n")[2].partition("  containers:\n")[0]


@pytest.mark.helm
def test_text_of_the_author_survives(tmp_path: Path) -> None:
    script = "- name: prepare  # why\n  image: 'example.com/prepare:1'\n  command:\n    - sh\n    - -c\n    - |\n"
    script += "      cat <<END  \n\n\n\n      two trailing spaces above, three blank lines\n      END\n# the end"
    chart = composed(library(tmp_path, {"mine/initContainers.yaml": script}))
    for line in script.splitlines():
        assert f"\n{line}\n" in pod_template(chart) or not line
    (container,) = pod(rendered(chart))["spec"]["initContainers"]
    assert container["command"][2] == "cat <<END  \n\n\n\ntwo trailing spaces above, three blank lines\nEND\n"


@pytest.mark.helm
def test_line_ends_of_windows_and_missing_last_line_ends(tmp_path: Path) -> None:
    files = {
        "a/env.yaml": "- name: A\r\n  value: x\r\n# the end",
        "a/beforeLaunch.sh": "echo a",
        "b/env.yaml": "- name: B\n  value: x",
        "b/beforeLaunch.sh": "echo b\r\n",
    }
    chart = composed(library(tmp_path, files, "a", "b"))
    assert not [path for path, text in chart.files.items() if "\r" in text]
    names = [entry["name"] for entry in pod(rendered(chart))["spec"]["containers"][0]["env"]]
    assert {"A", "B"} <= set(names)
    assert [chart.files[f"files/fragments/{name}.sh"] for name in "ab"] == ["echo a\n", "echo b\n"]
    (scripts,) = (thing["data"] for thing in rendered(chart) if thing["kind"] == "ConfigMap")
    assert "\necho a\necho b\n" in scripts["start.sh"]


@pytest.mark.helm
def test_indent_is_the_composers(tmp_path: Path) -> None:
    slot = "- name: disk\n  {{- toYaml .Values.nodeSelector | nindent <%= indent + 2 %> }}\n"
    chart = composed(library(tmp_path, {"mine/volumes.yaml": slot}))
    found = pod(rendered(chart, nodeSelector={"hostPath": "x"}))
    assert {"name": "disk", "hostPath": "x"} in found["spec"]["volumes"]


# -- values


VALUES = """\
# Ours.
disk:
  # -- Where the disk is; a | b
  path: /mnt/disk  # as built
  # -- Its options
  options: {}
"""
# As the chart has them: a description where its line has room.
BESIDE = VALUES.replace("  # -- Its options\n  options: {}\n", "  options: {}  # -- Its options\n")
SCHEMA = """\
{"properties": {"disk": {
  "type": "object", "properties": {"path": {"type": "string"}, "options": {"type": "object"}}
}}}
"""


def test_a_fragments_values_join_the_charts(tmp_path: Path) -> None:
    chart = composed(library(tmp_path, {"mine/values.yaml": VALUES, "mine/values.schema.json": SCHEMA}))
    assert BESIDE in chart.files["values.yaml"]
    schema = json.loads(chart.files["values.schema.json"])
    assert schema["properties"]["disk"]["additionalProperties"] is False
    published = json.loads(published_schemas([chart])[f"{chart.name}.values.schema.json"])
    assert published["properties"]["disk"]["properties"]["path"]["description"] == "Where the disk is; a | b"
    assert "`disk`" in chart.files["README.md"]


def test_a_targets_defaults_replace_in_place(tmp_path: Path) -> None:
    more = "values:\n  disk: {path: /other}\n  nodes: 2\n  env: {POOL: 'gpu|a'}\n  tolerations: [{key: a}]\n"
    more += "  launchers: {nemo-1: {image: 'example.com/nemo:2'}}\n"
    folder = library(tmp_path, {"mine/values.yaml": VALUES, "mine/values.schema.json": SCHEMA}, more=more)
    chart = composed(folder)
    text = chart.files["values.yaml"]
    assert BESIDE.replace("/mnt/disk", '"/other"') in text
    assert "nodes: 2  # -- Machines of the run\n" in text
    values = require_map(load(text, "values.yaml"), "values.yaml")
    assert values["env"] == {"POOL": "gpu|a"}
    assert values["tolerations"] == [{"key": "a"}]
    assert values["launchers"]["nemo-1"]["image"] == "example.com/nemo:2"  # type: ignore[index,call-overload]
    assert '| `env` | `{"POOL": "gpu\\|a"}` |' in chart.files["README.md"]


def test_a_target_needs_no_values(tmp_path: Path) -> None:
    assert composed(library(tmp_path, {})).files["values.yaml"]


def test_addresses_among_a_targets_sources_are_the_charts(tmp_path: Path) -> None:
    sources = ["our handbook", "https://example.com/machines, page 3", "some/where @ 1047080, a.yaml (labels)"]
    sources += ["some/where @ 1047080, b.yaml", "https://example.com/machines", "docs.example.com, @ 1047080"]
    folder = library(tmp_path, {})
    target = folder / "targets" / "box.yaml"
    target.write_text(re.sub("(?m)^sources:.*$", f"sources: {json.dumps(sources)}", target.read_text()))
    head = require_map(load(composed(folder).files["Chart.yaml"], "Chart.yaml"), "Chart.yaml")
    assert head["sources"] == ["https://example.com/machines", "https://github.com/some/where/tree/1047080"]
    assert "sources" not in composed(library(tmp_path / "other", {})).files["Chart.yaml"]


def test_places_in_a_values_file_with_tags_are_the_files_own(tmp_path: Path) -> None:
    tagged = "<% if target.name %>\n" + VALUES + "<% endif %>\nnodes: 5\n"
    folder = library(tmp_path, {"mine/values.yaml": tagged, "mine/values.schema.json": SCHEMA})
    with pytest.raises(Exception, match=r"mine/values.yaml:9:1: 'nodes' is already defined in "):
        composed(folder)


# -- targets


def test_texts_of_several_lines_become_one(tmp_path: Path) -> None:
    folder = library(tmp_path, {"mine/fragment.yaml": "description: |\n  One | two\n  three\nsources: [the test]\n"})
    assert "| mine | One \\| two three |\n" in composed(folder).files["FRAGMENTS.md"]


@pytest.mark.helm
def test_setup_chart_only_where_there_is_something_to_set_up(tmp_path: Path) -> None:
    folder = library(tmp_path, {})
    assert compose_setup(load_target("box", open_library([folder]))) is None
    setup = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ include "<%= chart %>.mine" . }}\n'
    helper = '{{- define "<%= chart %>.mine" -}}\n<%= chart %>\n{{- end }}\n'
    folder = library(tmp_path, {"mine/setup/ours.yaml": setup, "mine/helpers.tpl": helper})
    chart = compose_setup(load_target("box", open_library([folder])))
    assert chart is not None
    assert chart.name == "box-setup"
    assert [item["metadata"]["name"] for item in rendered(chart)] == ["box-setup"]


def test_a_changed_file_is_read_again_in_the_same_process(tmp_path: Path) -> None:
    folder = library(tmp_path, {"mine/values.yaml": VALUES, "mine/values.schema.json": SCHEMA})
    first = composed(folder)
    library(tmp_path, {"mine/values.schema.json": SCHEMA.replace('"string"', '"string", "minLength": 1')})
    assert composed(folder) != first


@pytest.mark.parametrize("name", open_library().names("launcher"))
def test_the_parts_of_chartgens_own_launchers_are_sound(name: str) -> None:
    launcher = load_launcher(open_library().find("launcher", name))
    for part, text in launcher.parts.items():
        check_part(text, launcher.path / part)
