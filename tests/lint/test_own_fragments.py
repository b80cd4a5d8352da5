"""What lint finds in a user's own fragments that Helm renders without an error, at the place in the user's files."""

from __future__ import annotations

from pathlib import Path

import pytest
from answers import findings as read
from userlib import chartgen, library

VALUES = {
    "mine/values.yaml": "mine:\n  # -- Prefix of the networks\n  prefix: ib\n",
    "mine/values.schema.json": '{"properties": {"mine": {"properties": {"prefix": {"type": "string"}}}}}',
}
HUGE = {"mine/resourceLimits.yaml": "# Of the driver\nhugepages-2Mi: 4Gi\n"}
OF_GPUS = ("mine",)
MEMORY = "launchers.nemo-1.resources.requests.memory=1Gi"


def findings(folder: Path, *more: str) -> list[tuple[str, str, int]]:
    ignored = "several-machines-are-rendered,fabric-of-the-target"
    ran = chartgen("lint", "box", "--path", folder, "--no-cache", "--ignore", ignored, "--output", "json", *more)
    return [(each["rule"], each["path"].removeprefix(f"{folder}/"), each["line"]) for each in read(ran.stdout)]


@pytest.mark.helm
def test_a_misspelled_value_is_reported_where_it_is_printed(tmp_path: Path) -> None:
    networks = '# Networks\nexample.com/networks: {{ printf "%s-0" .Values.mine.PREFIX | quote }}\n'
    sound = library(tmp_path / "sound", {**VALUES, "mine/podAnnotations.yaml": networks.replace("PREFIX", "prefix")})
    assert findings(sound) == []
    ours = library(tmp_path / "ours", {**VALUES, "mine/podAnnotations.yaml": networks.replace("PREFIX", "prefx")})
    rules = ("values-are-printed", "values-are-known")
    assert {(rule, "fragments/mine/podAnnotations.yaml", 2) for rule in rules} <= set(findings(ours))


@pytest.mark.helm
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{{- $machine := include "<%= chart %>.machine" . | fromJson }}\na: {{ $machine.fabric.raks | quote }}\n', 3),
        ('a: {{ (include "<%= chart %>.machine" . | fromJson).fabric.shelf | quote }}\n', 2),
        # absent on purpose, in a fragment that several targets share
        ('{{- if (include "<%= chart %>.machine" . | fromJson).fabric.shelf }}\na: b\n{{- end }}\n', 0),
        ('a: {{ ((include "<%= chart %>.machine" . | fromJson).fabric.shelf | default 1) | quote }}\n', 0),
        ('a: {{ print "$machine.fabric.raks" | quote }}\n', 0),
        ("{{- /* $machine.fabric.raks */}}\na: b\n", 0),
    ],
)
def test_a_key_of_fabric_that_no_machine_type_has(text: str, line: int, tmp_path: Path) -> None:
    ours = library(tmp_path, {"mine/podLabels.yaml": f"# Labels\n{text}"})
    target = ours / "targets/box.yaml"
    target.write_text(target.read_text().replace("memory: 1Ti}", "memory: 1Ti}\n    fabric: {racks: 2}"))
    expected = {("fabric-is-known", "fragments/mine/podLabels.yaml", line)} if line else set()
    assert {each for each in findings(ours) if each[0] == "fabric-is-known"} == expected


@pytest.mark.helm
def test_a_misspelled_helper_is_reported_with_the_one_that_is_meant(tmp_path: Path) -> None:
    ours = library(tmp_path, {"mine/podLabels.yaml": '# Nodes\na: {{ include "<%= chart %>.nodez" . | quote }}\n'})
    (only,) = read(chartgen("lint", "box", "--path", ours, "--no-cache", "--output", "json").stdout)
    assert (only["rule"], only["path"], only["line"]) == ("helm-template", f"{ours}/fragments/mine/podLabels.yaml", 2)
    assert "box.nodes" in only["hint"]


@pytest.mark.helm
@pytest.mark.parametrize(
    ("read", "right"),
    [
        ("{{ .Values.model.layrs | quote }}", "{{ .Values.model.layers | quote }}"),
        ("{{ .Values.mine.prefx | quote }}", "{{ .Values.mine.prefix | quote }}"),
    ],
)
def test_a_misspelled_value_is_reported_where_nothing_is_printed(read: str, right: str, tmp_path: Path) -> None:
    annotation = "# Networks\nexample.com/networks: a{{/* the text needs no quotes */}}%s\n"
    used = {"mine/labels.yaml": "{{- if .Values.mine.prefix }}{{ end }}\n"}
    sound = {**VALUES, **used, "mine/podAnnotations.yaml": annotation % right}
    assert findings(library(tmp_path / "sound", sound)) == []
    ours = {**VALUES, **used, "mine/podAnnotations.yaml": annotation % read}
    assert findings(library(tmp_path / "ours", ours)) == [("values-are-known", "fragments/mine/podAnnotations.yaml", 2)]


@pytest.mark.helm
def test_a_fragment_may_ask_for_values_of_other_targets(tmp_path: Path) -> None:
    asks = "{{- if .Values.elsewhere }}{{ end }}{{- with .Values.launchers.other }}{{ end }}\n"
    asks += "{{- with .Values.mine.prefix }}{{ end }}\n"
    assert findings(library(tmp_path, {**VALUES, "mine/labels.yaml": asks})) == []


@pytest.mark.helm
def test_a_text_that_is_written_so_is_no_misprint(tmp_path: Path) -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-go\n  labels:\n"
    config += '    {{- include "<%= chart %>.labels" . | nindent 4 }}\n'
    config += "data:\n  text: |\n    fmt prints <nil> and %!s(MISSING)\n"
    assert findings(library(tmp_path, {"mine/manifests/config.yaml": config})) == []


@pytest.mark.helm
def test_a_value_that_nothing_reads_is_reported_at_its_default(tmp_path: Path) -> None:
    ours = library(tmp_path, VALUES)
    assert findings(ours) == [("values-are-used", "fragments/mine/values.yaml", 3)]


@pytest.mark.helm
@pytest.mark.parametrize(
    "file",
    [
        {"setup/own.yaml": "{{- if .Values.mine.prefix }}{{ end }}\n"},
        {"env.yaml": "{{- with .Values.mine }}{{ end }}\n"},
    ],
)
def test_a_value_is_read_by_the_setup_chart_or_with_its_map(file: dict[str, str], tmp_path: Path) -> None:
    ours = library(tmp_path, {**VALUES, **{f"mine/{name}": text for name, text in file.items()}})
    assert findings(ours) == []


@pytest.mark.helm
def test_huge_pages_that_a_machine_type_does_not_have(tmp_path: Path) -> None:
    """Not with an amount that the values name, which is the site's."""
    ours = library(tmp_path, HUGE, gpu_only=OF_GPUS)
    assert findings(ours, "--set", MEMORY) == [("pods-fit-their-machines", "targets/box.yaml", 8)]
    target = ours / "targets/box.yaml"
    target.write_text(target.read_text().replace("memory: 1Ti", "memory: 1Ti, hugepages-2Mi: 4Gi"))
    assert findings(ours, "--set", MEMORY) == []


@pytest.mark.helm
def test_huge_pages_without_memory_are_reported_at_the_slot(tmp_path: Path) -> None:
    ours = library(tmp_path, HUGE, gpu_only=OF_GPUS)
    assert ("huge-pages-come-with-memory", "fragments/mine/resourceLimits.yaml", 2) in findings(ours)


@pytest.mark.helm
def test_a_capability_without_a_reason_is_reported_at_the_slot(tmp_path: Path) -> None:
    ours = library(tmp_path, {"mine/securityContext.yaml": "capabilities:\n  add: [IPC_LOCK]\n"})
    assert findings(ours) == [("no-added-capabilities", "fragments/mine/securityContext.yaml", 2)]
