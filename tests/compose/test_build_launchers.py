"""`chartgen build --launchers`: a chart of some launchers has nothing of the others, and is known for what it is."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from rendered import chart
from userlib import chartgen, composed, library, write

from chartgen.composer.assembly import compose
from chartgen.composer.origin import Composed, Unknown, annotations_of, origin_of
from chartgen.composer.target import load_target, with_launchers
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.program import HelmError
from chartgen.helm.values import load_values
from chartgen.helm.yaml import load

FEW = ("nccl-test", "megatron-lm")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("charts")
    result = chartgen("build", "gke-a3mega", "--launchers", "nccl-test, megatron-lm", "-d", folder)
    assert result.exit_code == 0, result.output
    return folder


def test_nothing_of_the_others_is_left(built: Path) -> None:
    made = Chart.read(built / "gke-a3mega")
    schema = json.loads(made.files["values.schema.json"])
    assert schema["properties"]["launcher"]["enum"] == list(FEW)
    described = schema["properties"]["launchers"]["properties"]
    assert [name for name, each in described.items() if "properties" in each] == list(FEW)
    assert made.files["values.yaml"].splitlines()[1].startswith("launcher: nccl-test ")
    # torchrun starts the processes of the others too
    common = "files/torchrun.sh"
    left = [launcher.name for launcher in load_target("gke-a3mega").launchers if launcher.name not in FEW]
    texts = {path: text for path, text in made.files.items() if path.startswith(("templates/", "files/", "values"))}
    del texts[common]
    assert [(path, name) for name in left for path, text in texts.items() if name in path or f"{name}:" in text] == []
    # no program prepares data: nothing runs as a Job, and no helper is there for one of the others alone
    assert not {"templates/job.yaml", "templates/_hydra.tpl"} & made.files.keys()
    assert {"templates/job.yaml", "templates/_hydra.tpl"} <= chart().files.keys()


def answer(made: Chart, values: dict[str, Any]) -> object:
    """What Helm renders, or why it does not."""
    try:
        return objects(render(made, "r", "n", values))
    except HelmError as error:
        return sorted(problem.message for problem in error.problems)


@pytest.mark.usefixtures("built_helm")
def test_a_chart_for_one_program_renders_as_the_whole_chart_does() -> None:
    """Its parts for others, for data programs and for other rules are left out."""
    target = load_target("gke-a3mega")
    data = {"source": "https://example.com/a/", "name": "a", "shards": 2}
    for name in (launcher.name for launcher in target.launchers):
        values = {"nodes": 2, "launcher": name, "launchers": {name: {"image": "example.com/own:1"}}}
        for more in ({}, {"data": data, "tokenizer": {"kind": "gpt2"}, "parallelism": {"tensor": 3}}):
            one = compose(with_launchers(target, [name]))
            assert answer(one, values | more) == answer(chart(), values | more), name


def test_the_folder_is_known_for_what_it_is(built: Path) -> None:
    origin = origin_of(Chart.read(built / "gke-a3mega"))
    assert isinstance(origin, Composed)
    assert origin.target.chosen == FEW
    assert compose(origin.target).files == Chart.read(built / "gke-a3mega").files
    refused = chartgen("check", built / "gke-a3mega", "--set", "launcher=nemo-1")
    assert (refused.exit_code, "launcher" in refused.output) == (1, True)
    assert chartgen("check", built / "gke-a3mega").exit_code == 0


def test_launchers_that_nobody_knows_make_a_chart_of_a_target_that_is_not_known(built: Path) -> None:
    files = Chart.read(built / "gke-a3mega").files
    files["Chart.yaml"] = files["Chart.yaml"].replace("launchers: nccl-test", "launchers: other")
    assert origin_of(Chart("gke-a3mega", files)) == Unknown("gke-a3mega")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("megatron-lm,nemo", ("'nemo'", "nemo-1, automodel, torchtitan, torchrun, mlperf-llama2-lora")),
        ("all,nemo-1", ("'all'", "nemo-1, automodel")),
    ],
)
def test_what_cannot_be_chosen_is_one_line_and_nothing_is_written(
    tmp_path: Path, names: str, words: tuple[str, ...]
) -> None:
    result = chartgen("build", "gke-a3mega", "--launchers", names, "-d", tmp_path)
    assert result.exit_code == 2
    (line,) = result.output.splitlines()
    assert [word for word in words if word not in line] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ((), "megatron-lm nemo-1 torchrun download nccl-test"),
        (("--preset", "gpt3-175b"), "nemo-1 download pile-dataprep nccl-test"),
        (("--preset", "gpt3-175b", "--launchers", "torchrun"), "torchrun"),
        (("--workload", "rayjob"), "nemo-rl download"),
        (("--set", "launcher=automodel,launchers.torchrun.image="), "automodel torchrun download nccl-test"),
    ],
)
def test_a_chart_has_the_launchers_of_its_values_or_presets(
    tmp_path: Path, options: tuple[str, ...], names: str
) -> None:
    assert chartgen("build", "gke-a3mega", *options, "-d", tmp_path).exit_code == 0
    (folder,) = (path for path in tmp_path.iterdir() if not path.name.endswith("-setup"))
    made = Chart.read(folder)
    assert annotations_of(made)["chartgen/launchers"] == names
    assert f"\nlauncher: {names.split(maxsplit=1)[0]}  #" in made.files["values.yaml"]


def test_all_launchers_are_every_one_of_the_kind(tmp_path: Path) -> None:
    assert chartgen("build", "gke-a3mega", "--launchers", "all", "-d", tmp_path).exit_code == 0
    assert Chart.read(tmp_path / "gke-a3mega").files == compose(load_target("gke-a3mega")).files


@pytest.mark.usefixtures("built_helm")
def test_helm_names_the_command_for_a_launcher_that_the_chart_lacks(built: Path) -> None:
    made = Chart.read(built / "gke-a3mega")
    with pytest.raises(HelmError, match="chartgen build gke-a3mega --launchers NAME"):
        render(made, "r", "n", {"launcher": "nemo-1"})
    # a site file is for every chart of the target
    assert render(made, "r", "n", {"launchers": {"nemo-1": {"image": "registry.example.com/nemo:1"}}})


@pytest.mark.usefixtures("built_helm")
def test_a_borrowed_image_needs_no_chart_of_its_owner() -> None:
    one = compose(load_target("gke-a3mega"), values={"launcher": "nccl-test"})
    assert origin_of(one).target.chosen == ("nccl-test",)  # type: ignore[union-attr]
    found = [objects(render(each, "r", "n", {"nodes": 2, "launcher": "nccl-test"})) for each in (one, chart())]
    assert found[0] == found[1]
    with pytest.raises(HelmError, match=r"launchers\.nccl-test\.image"):
        render(one, "r", "n", {"launchers": {"megatron-lm": {"image": "registry.example.com/nemo:1"}}})


@pytest.mark.parametrize("name", ["gke-a3mega", "oke-h100", "onprem-p8000"])
@pytest.mark.parametrize("names", [(), FEW])
def test_the_map_of_the_readme_names_what_is_there(name: str, names: tuple[str, ...]) -> None:
    made = compose(with_launchers(load_target(name), names))
    pages = {"README.md": "## Where is what\n", "FRAGMENTS.md": "## Where the rest is\n"}
    sections = [made.files[page].partition(title)[2].partition("\n## ")[0] for page, title in pages.items()]
    named = re.findall(r"`((?:files|templates|\.)[^`]+)`", "".join(sections))
    assert [path for path in named if not any(fnmatch(each, path) for each in made.files)] == []
    unnamed = [path for path in made.files if path.startswith(("templates/", "files/"))]
    assert [path for path in unnamed if not any(fnmatch(path, each) for each in named)] == []


OURS = """\
description: Our program
task: train
processes: gpu
program: /opt/train.py
image: example.com/ours:1
precisions: [bf16]
sources: [us]
"""


@pytest.mark.helm
@pytest.mark.parametrize("schema", ['{"properties": {"speed": {"type": "integer"}}}', '{"speed": {"type": "integer"}}'])
def test_a_users_configuration_is_the_file_that_the_arguments_name(tmp_path: Path, schema: str) -> None:
    library(tmp_path, {"mine/labels.yaml": "example.com/team: a\n"})
    target = tmp_path / "targets/box.yaml"
    target.write_text(target.read_text().replace("[nemo-1]", "[ours]"))
    files = {"launcher.yaml": OURS, "values.yaml": "# -- How fast\nspeed: 3\n", "values.schema.json": schema}
    files["args.yaml"] = "- --config=/etc/chartgen/ours.yaml\n"
    files["config.yaml"] = "train:\n  speed: {{ .Values.launchers.ours.speed }}\n"
    write(tmp_path / "launchers/ours", files)
    values = load_values(set_values=["launchers.ours.config.train.seed=3"])
    found = objects(render(composed(tmp_path), "a", "b", values.data))
    (text,) = (each["data"]["ours.yaml"] for each in found if each["kind"] == "ConfigMap")
    assert load(text, "ours.yaml").data == {"train": {"speed": 3, "seed": 3}}
