"""A target that extends another one: its own name and changes; presets, overlays and the site file come along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from userlib import chartgen, write

from chartgen.composer.assembly import compose
from chartgen.composer.library import open_library
from chartgen.composer.presets import preset_layers
from chartgen.composer.target import Target, load_target
from chartgen.errors import ChartgenError, UsageError

OURS = """\
description: Our A3 Mega machines
extends: gke-a3mega
machines:
  a3-megagpu-8g:
    capacity: {cpu: 200000m}
add: [extra]
leaveOut: [tensorboard, pile-dataprep]
values:
  sharedMemory: 200Gi
"""


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A folder with a target that extends one of chartgen's."""
    fragment = "description: d\nsources: [us]\n"
    files = {"targets/ours.yaml": OURS, "fragments/extra/fragment.yaml": fragment}
    write(tmp_path, {**files, "fragments/extra/env.yaml": "- name: EXTRA\n  value: x\n"})
    return tmp_path


def loaded(folder: Path, name: str = "ours") -> Target:
    return load_target(name, open_library([folder]))


def refused(folder: Path, text: str) -> list[tuple[str, int]]:
    """The problems of a target with this text, each by its file's name and line."""
    write(folder, {"targets/ours.yaml": text})
    with pytest.raises(ChartgenError) as caught:
        loaded(folder)
    return [(Path(str(problem.path)).name, problem.line) for problem in caught.value.problems]


def test_maps_are_merged_and_names_are_added_or_left_out(ours: Path) -> None:
    own, parent = loaded(ours), load_target("gke-a3mega")
    machine = own.machines["a3-megagpu-8g"]
    assert machine.capacity == {**parent.default_machine.capacity, "cpu": "200000m"}
    assert machine.labels == parent.default_machine.labels
    names = [fragment.name for fragment in parent.every_fragment if fragment.name != "tensorboard"]
    assert [fragment.name for fragment in own.every_fragment] == [*names, "extra"]
    assert own.values == {**parent.values, "sharedMemory": "200Gi"}
    assert (own.platform, own.workload, own.sources) == (parent.platform, parent.workload, parent.sources)


def test_its_machine_types_are_listed_with_those_of_the_parent(ours: Path) -> None:
    found = [each for each in open_library([ours]).machine_types() if each.target == "ours"]
    assert [(each.name, each.count) for each in found] == [("a3-megagpu-8g", "8")]


def test_it_composes_under_its_own_name(ours: Path) -> None:
    chart = compose(loaded(ours))
    assert chart.name == "ours"
    assert any("EXTRA" in text for text in chart.files.values())


def test_presets_have_the_overlays_of_the_parent_and_its_own_above_them(ours: Path) -> None:
    library = open_library([ours])
    theirs = preset_layers("gpt3-175b", "gke-a3mega", library)
    assert preset_layers("gpt3-175b", "ours", library) == theirs
    write(ours, {"values/ours/gpt3-175b.yaml": "steps: 7\n"})
    assert preset_layers("gpt3-175b", "ours", library) == [*theirs, ours / "values/ours/gpt3-175b.yaml"]
    ran = chartgen("check", "ours", "--path", ours, "--preset", "gpt3-175b", "--set", "queue.name=q")
    assert ran.exit_code == 0, ran.output


def test_a_built_chart_has_the_launchers_of_the_parent_s_presets(ours: Path) -> None:
    for name in ("ours", "gke-a3mega"):
        assert chartgen("build", name, "--path", ours, "-d", ours / "charts").exit_code == 0
    built, theirs = (
        {file.name for file in (ours / "charts" / name / "templates/launchers").iterdir()}
        for name in ("ours", "gke-a3mega")
    )
    assert built == theirs - {"_pile-dataprep.tpl"}


@pytest.mark.threat(4)
@pytest.mark.parametrize(("content", "said"), [(None, "is a link out of"), (b"a: \xff", "UTF-8")])
def test_init_refuses_an_example_that_is_no_text_of_the_folder(
    content: bytes | None, said: str, ours: Path, tmp_path: Path
) -> None:
    example = ours / "values/site.ours.example.yaml"
    example.parent.mkdir(exist_ok=True)
    if content is None:
        (tmp_path / "secret").write_text("token: 1")
        example.symlink_to(tmp_path / "secret")
    else:
        example.write_bytes(content)
    ran = chartgen("init", "ours", "--path", str(ours), "--no-ask", "--to", str(tmp_path / "site.yaml"))
    assert ran.exit_code != 0
    assert said in ran.stderr
    assert not (tmp_path / "site.yaml").exists()


def test_init_writes_the_example_of_the_parent(ours: Path) -> None:
    assert chartgen("init", "ours", "--path", ours, "--to", ours / "site.yaml", "--no-ask").exit_code == 0
    assert "$schema=charts/ours/values.schema.json" in (ours / "site.yaml").read_text()


def test_show_names_the_file_that_each_part_comes_from(ours: Path) -> None:
    found = json.loads(chartgen("show", "ours", "--path", ours, "--output", "json").stdout)
    assert found["extends"] == ["gke-a3mega"]
    assert found["own"] == {
        "machines": ["a3-megagpu-8g"],
        "add": ["extra"],
        "leaveOut": ["tensorboard", "pile-dataprep"],
        "values": ["sharedMemory"],
    }


def test_a_target_may_extend_one_that_extends_another(ours: Path) -> None:
    write(ours, {"targets/theirs.yaml": "description: d\nextends: ours\nvalues: {localDisk: /mnt/x}\n"})
    own = loaded(ours, "theirs")
    assert (own.parents, own.values["localDisk"], own.values["sharedMemory"]) == (
        ("ours", "gke-a3mega"),
        "/mnt/x",
        "200Gi",
    )


MACHINE = "machines:\n  other:\n    gpus: 8\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("description: d\nextends: gke-a3megan\n", 2),
        ("description: d\nextends: ours\n", 2),
        ("description: d\nextends: gke-a3mega\nleaveOut: [tensorboards]\n", 3),
        ("description: d\nextends: gke-a3mega\nleaveOut: [a3-megagpu-8g]\n", 3),
        ("description: d\nextends: gke-a3mega\nadd: [no-such]\n", 3),
        ("description: d\nextends: gke-a3mega\nadd: [kueue]\n", 3),
        ("description: d\nextends: gke-a3mega\nplatfrom: x\n", 3),
    ],
)
def test_mistakes_are_at_their_place(ours: Path, text: str, line: int) -> None:
    assert refused(ours, text) == [("ours.yaml", line)]


def test_a_new_machine_is_whole(ours: Path) -> None:
    places = refused(ours, f"description: d\nextends: gke-a3mega\n{MACHINE}")
    assert places == [("ours.yaml", 4), ("ours.yaml", 4)]


def test_a_conflict_of_fragments_is_at_the_added_one(ours: Path) -> None:
    write(ours, {"fragments/extra/fragment.yaml": "description: d\nrequires: [nothing]\nsources: [us]\n"})
    with pytest.raises(ChartgenError) as caught:
        compose(loaded(ours))
    assert [problem.line for problem in caught.value.problems] == [6]


def test_a_program_composes_with_more_fragments_and_fewer_launchers(ours: Path) -> None:
    target = load_target("gke-a3mega", open_library([ours]))
    chart = compose(target, fragments=["extra"], launchers=["nemo-1", "download"])
    assert any("EXTRA" in text for text in chart.files.values())
    assert {path for path in chart.files if path.startswith("templates/launchers/")} == {
        "templates/launchers/_nemo-1.tpl",
        "templates/launchers/_download.tpl",
    }
    with pytest.raises(UsageError):
        compose(target, fragments=["no-such"])
    with pytest.raises(UsageError):
        compose(target, launchers=["no-such"])
    write(ours, {"fragments/extra/fragment.yaml": "description: d\nrequires: [nothing]\nsources: [us]\n"})
    with pytest.raises(ChartgenError):
        compose(target, fragments=["extra"])
