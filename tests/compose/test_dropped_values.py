"""A portable value that the launcher's program has no option for is an error at its place, in `check` and chart."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from answers import findings
from rendered import VALUES
from userlib import TARGET, chartgen, write

from chartgen.composer.assembly import compose
from chartgen.composer.launcher import load_launcher
from chartgen.composer.library import open_library
from chartgen.composer.rule_facts import PORTABLE
from chartgen.composer.target import load_target
from chartgen.errors import ChartgenError
from chartgen.helm.manifests import render, written_chart
from chartgen.helm.program import find_helm

# What the skeleton of a launcher owns.
OWNED = {"steps", "batch.global"}
# Another value than the usual one, of each key; what else makes the values valid.
OTHER = {
    "parallelism.tensor": "2",
    "parallelism.pipeline": "2",
    "parallelism.virtualPipeline": "2,parallelism.pipeline=2",
    "parallelism.context": "2",
    "parallelism.expert": "2,model.experts=2",
    "parallelism.sequence": "true,parallelism.tensor=2",
    "parallelism.distributedOptimizer": "false",
    "recompute": "full",
    "batch.micro": "2",
    "batch.global": "64",
    "sequenceLength": "131072",
    "steps": "11",
    "evaluation.batches": "10",
    "data.name": "web",
    "checkpoint.enabled": "true",
    "checkpoint.from": "/data/base",
    "checkpoint.keep": "3",
    "profile.enabled": "true",
    "optimizer.learningRate": "1e-4",
    "optimizer.minLearningRate": "1e-5",
    "optimizer.warmupSteps": "2",
    "optimizer.decay": "linear",
    "optimizer.weightDecay": "0.1",
    "optimizer.clipGradient": "1",
    "model.rotaryBase": "10000,model.family=llama",
    "model.initStandardDeviation": "0.01",
    "model.tiedEmbeddings": "true",
    "wandb.project": "p",
    "mlflow.experiment": "e,mlflow.uri=http://m",
}


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A target with the unchanged skeleton of a launcher alone."""
    assert chartgen("new", "launcher", "ours", "--path", tmp_path).exit_code == 0
    write(tmp_path, {"targets/box.yaml": TARGET.replace(", FRAGMENTS", "").replace("nemo-1", "ours")})
    return tmp_path


def dropped(folder: Path, *sets: str, target: str = "box", more: tuple[str, ...] = ()) -> set[str]:
    """The keys that no option of the program takes, by `check`."""
    ran = chartgen(
        "check",
        target,
        "--path",
        folder,
        *(part for each in sets for part in ("--set", each)),
        *more,
        "--output",
        "json",
    )
    found = [each for each in findings(ran.stdout) if each["rule"] == "settings-of-the-launcher"]
    return {each["message"].partition(":")[0] for each in found}


def test_every_key_has_another_value() -> None:
    assert OTHER.keys() == PORTABLE.keys()


@pytest.mark.parametrize("key", OTHER)
def test_a_value_without_an_option_is_an_error(ours: Path, key: str) -> None:
    found = dropped(ours, f"{key}={OTHER[key]}")
    assert (key in found) == (key not in OWNED)


def test_defaults_that_nobody_set_are_none(ours: Path) -> None:
    assert dropped(ours) == set()


@pytest.mark.helm
def test_plain_helm_refuses_them_too(ours: Path) -> None:
    found = compose(load_target("box", open_library([ours])))
    with pytest.raises(ChartgenError) as caught:
        render(found, "r", "ns", {"sequenceLength": 131072, "recompute": "full", "checkpoint": {"enabled": True}})
    for key in ("sequenceLength", "recompute", "checkpoint.enabled"):
        assert f"{key}: launcher ours has no option for it" in str(caught.value)


# What makes the values of a program beside training valid.
BESIDE = {
    "download": "data.source=https://example.com/a.txt,storage.data.readOnly=false",
    "megatron-preprocess": "data.source=https://example.com/a.jsonl,data.name=a,tokenizer.kind=gpt2,"
    "tokenizer.path=/data/t,storage.data.readOnly=false",
    "mlperf-preprocess": "launchers.mlperf-preprocess.image=example.com/a:1,storage.data.readOnly=false",
    "nccl-test": "nodes=2",
    "pile-dataprep": "data.name=a,data.shards=2,tokenizer.kind=gpt2,tokenizer.path=/data/t,storage.data.readOnly=false",
}
USED = {"download": {"checkpoint.from"}, "megatron-preprocess": {"data.name"}, "pile-dataprep": {"data.name"}}


def test_every_program_beside_training_is_tried() -> None:
    library = open_library()
    tasks = {name: load_launcher(library.find("launcher", name)).task for name in library.names("launcher")}
    assert BESIDE.keys() == {name for name, task in tasks.items() if task != "train"}


@pytest.mark.parametrize("launcher", BESIDE)
def test_what_is_set_for_a_program_beside_training_is_an_error(ours: Path, launcher: str) -> None:
    sets = (f"launcher={launcher}", BESIDE[launcher], *(f"{key}={value}" for key, value in OTHER.items()))
    assert dropped(ours, *sets, target="gke-a3high") == OTHER.keys() - USED.get(launcher, set())


def test_what_presets_and_files_set_for_training_is_none(ours: Path) -> None:
    write(ours, {"run.yaml": "launcher: megatron-lm\nsteps: 50\n", "test.yaml": "launcher: nccl-test\nsteps: 50\n"})
    (site,) = VALUES.glob("site.gke-a3high.example.yaml")
    (ours / "site.yaml").write_text(site.read_text() + "wandb: {project: team}\n")
    run, test, own = (("-f", str(ours / name)) for name in ("run.yaml", "test.yaml", "site.yaml"))

    def found(*more: str, sets: tuple[str, ...] = ()) -> set[str]:
        return dropped(ours, *sets, target="gke-a3high", more=more)

    assert found(*run, *own, sets=(f"launcher=download,{BESIDE['download']}",)) == set()
    assert found("--preset", "nccl-test", *own) == set()
    assert found("--preset", "nccl-test", *own, sets=("steps=20",)) == {"steps"}
    assert found("--preset", "nccl-test", *run, sets=("launcher=nccl-test",)) == set()
    assert found(*test) == {"steps"}
    shown = chartgen("check", "gke-a3high", "--preset", "nccl-test", *own).stderr
    assert "not used" in shown
    assert "wandb.project" in shown


@pytest.mark.helm
def test_the_notes_of_plain_helm_name_what_such_a_program_does_not_use() -> None:
    sets = "launcher=nccl-test,nodes=2,steps=30,parallelism.tensor=4,storage.outputs.from=pvc://a"
    with written_chart(compose(load_target("gke-a3mega"))) as folder:
        argv = [str(find_helm().executable), "install", "net", str(folder), "--set", sets, "--dry-run=client"]
        notes = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        usual = subprocess.run(
            [*argv, "--set", "steps=10,parallelism.tensor=1"], capture_output=True, text=True, check=True
        )
    assert "  Not used    parallelism.tensor, steps: set for training\n" in notes
    assert "Not used" not in usual.stdout


def test_the_place_is_that_of_the_value_not_of_the_program(ours: Path) -> None:
    write(ours, {"train.py": "pass\n"})
    more = ("--set", "steps=20", "--set", "launchers.torchrun.image=example.com/own:1")
    shown = chartgen("check", "eks-p5", *more, "--program-file", str(ours / "train.py")).stdout
    assert "--set steps=20: steps: launcher torchrun has no option for it" in shown
