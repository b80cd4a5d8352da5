"""Launcher torchrun: any program with its own arguments and files, started by the chart's scripts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from facts import missing
from fake_torchrun import install
from pod_runner import Machine, lab, run
from rendered import arguments, chart, container, env, one, rendered

from chartgen.checks import check
from chartgen.errors import ChartgenError
from chartgen.helm.values import Values
from chartgen.metrics.figures.jobs import facts_of_release
from chartgen.releases.plan import plan_release

# Prints what reached it, and saves a file as a trainer saves a checkpoint.
PROGRAM = """\
import os, sys
from pathlib import Path
# one write, for torchrun makes the ranks' output unbuffered, and print() writes each word by itself
sys.stdout.write(f"rank {os.environ['RANK']} {sys.argv[1:]} {os.getcwd()} {os.environ['RESUME']}\\n")
Path(os.environ["CHECKPOINT_DIRECTORY"], os.environ["RANK"]).touch()
sys.exit(int(os.environ.get("CODE", "0")))
"""
OWN: dict[str, Any] = {
    "image": "example.com/own:1",
    "program": "/etc/chartgen/own.py",
    "files": {"own.py": PROGRAM, "odd.txt": "  two spaces\r\n\nno end, ünïcode $(nodes) {{ 1 }}"},
    "args": ["--world=$(worldSize)", "$(resume)", "$$(nodes)", "a b $HOME", "$(checkpointDirectory)", "$(run)"],
}


def values(**more: Any) -> dict[str, Any]:
    return {
        "launcher": "torchrun",
        "nodes": 1,
        "gpusPerNode": 2,
        "launchers": {"torchrun": OWN | {name: value for name, value in more.items() if name in {*OWN, *_KEYS}}},
        **{name: value for name, value in more.items() if name not in {*OWN, *_KEYS}},
    }


_KEYS = ("directory", "starter", "starterArgs", "metrics")


def made(**more: Any) -> Any:
    return run(json=tuple(f"{name}={json.dumps(value)}" for name, value in values(**more).items()))


def test_names_are_filled_in_and_files_stay_as_they_are() -> None:
    found = made()
    config = one("ConfigMap", found)
    assert {name: config["data"][name] for name in OWN["files"]} == OWN["files"]
    name = config["metadata"]["name"]
    assert arguments(found) == [
        OWN["program"], "--world=2", "$(resume)", "$(nodes)", "a b $HOME", "/outputs/ml/my-run/checkpoints", name,
    ]  # fmt: skip
    assert container(found)["image"] == "example.com/own:1"
    module = made(program="-m trainer.main", args=["--steps=$(steps)"])
    assert arguments(module) == ["-m", "trainer.main", "--steps=10"]
    assert one("ConfigMap", made(files={"own.py": "1"}))["metadata"]["name"] != name, "another file is another run"


def test_the_program_starts_ends_and_finds_its_checkpoints_again(tmp_path: Path) -> None:
    install(tmp_path)
    machine, work = Machine(tmp_path, {"PYTHONPATH": str(tmp_path / "modules")}), tmp_path / "work"
    work.mkdir()
    found = made(directory=str(work))
    told = ["--world=2", "{}", "$(nodes)", "a b $HOME", f"{tmp_path}/outputs/ml/my-run/checkpoints"]
    for code, resume in ((0, "false"), (0, "true")):
        done, log = machine.finish(found)
        assert done == code, log
        for rank in (0, 1):
            expected = str([resume if word == "{}" else word for word in told])[:-1]
            (line,) = (each for each in log.splitlines() if each.startswith(f"rank {rank} "))
            assert line.startswith(f"rank {rank} {expected}"), line
            assert line.endswith(f"{work} {resume}")
    done, log = machine.finish(found, {"CODE": "7"})
    assert done != 0, log


@pytest.mark.parametrize(
    ("given", "passed"),
    [(["--mixed_precision=bf16"], ["--multi_gpu", "--mixed_precision=bf16"]), (["--use_fsdp"], ["--use_fsdp"])],
)
def test_accelerate_starts_all_processes_as_one_kind_of_run(
    tmp_path: Path, given: list[str], passed: list[str]
) -> None:
    """Its own parser takes these arguments (accelerate 1.15.0), and refuses --multi_gpu beside --use_fsdp."""
    install(tmp_path)
    machine = Machine(tmp_path, {"PYTHONPATH": str(tmp_path / "modules")})
    record = machine.program("accelerate")
    found = made(starter="accelerate", starterArgs=given)
    assert machine.finish(found)[0] == 0
    ((argv, variables),) = [json.loads(line) for line in record.read_text().splitlines()]
    until = argv.index("--no-python")
    assert argv[1:until] == [
        "launch", "--num_machines=1", "--num_processes=2", "--machine_rank=0",
        f"--main_process_ip={variables['MASTER_ADDR']}", "--main_process_port=6002", *passed,
    ]  # fmt: skip
    assert argv[until + 1] == "bash"
    assert argv[until + 3] == f"{tmp_path}/etc/chartgen/own.py"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"program": ""}, "launchers.torchrun.program"),
        ({"args": ["$(node)", "$$(node)"]}, "launchers.torchrun.args $(node) $(nodes)"),
        ({"parallelism": {"tensor": 2}}, "parallelism.tensor torchrun"),
        ({"recompute": "full"}, "recompute torchrun"),
        ({"profile": {"enabled": True, "startStep": 1, "endStep": 2}}, "profile.enabled"),
        ({"optimizer": {"learningRate": 1.0}}, "optimizer.learningRate torchrun"),
        ({"starterArgs": ["--use_fsdp"]}, "launchers.torchrun.starterArgs accelerate"),
    ],
)
def test_what_does_not_reach_the_program_is_refused(more: dict[str, Any], expected: str) -> None:
    with pytest.raises(ChartgenError) as caught:
        made(**more)
    (line,) = str(caught.value).removeprefix("\n").splitlines()
    assert missing(expected, line) == []


def test_mpirun_starts_any_program_but_not_by_accelerate() -> None:
    sets = [f"{name}={json.dumps(value)}" for name, value in values(nodes=2, gpusPerNode=None).items()]
    found = rendered(files=(), name="oke-h100", json=tuple(sets))
    (script,) = (each["data"]["rank.sh"] for each in found if "rank.sh" in each.get("data", ()))
    assert "$(resume)" in script
    sets = [f"{name}={json.dumps(value)}" for name, value in values(starter="accelerate").items()]
    with pytest.raises(ChartgenError) as caught:
        rendered(files=(), name="oke-h100", json=tuple(sets))
    assert missing("launchers.torchrun.starter accelerate mpirun", str(caught.value)) == []


@pytest.mark.parametrize("target", ["gke-a3mega", "oke-h100", "eks-p5"])
def test_a_file_does_not_take_the_name_of_one_of_the_charts(target: str) -> None:
    sets = {"nodes": 2, "gpusPerNode": None, "run": {"hangMinutes": 1}}
    base = [f"{name}={json.dumps(value)}" for name, value in values(program="/opt/own.py", files={}, **sets).items()]
    found = rendered(files=(), name=target, json=tuple(base))
    (names,) = (set(each["data"]) for each in found if "start.sh" in each.get("data", ()))
    assert names >= {"rank.sh", "watch.py"}
    pattern = json.loads(chart(name=target).files["values.schema.json"])["definitions"]["fileName"]["not"]["pattern"]
    assert {name for name in names if not re.search(pattern, name)} == set()


@pytest.mark.parametrize(
    "own",
    [
        {"files": {"start.sh": "x"}},
        {"files": {"watch.py": "x"}},
        {"files": {"../x": "x"}},
        {"program": "train.py"},
        {"program": "-m a.b; id"},
        {"starter": "accelerate", "starterArgs": ["--num_machines=3"]},
        {"starter": "accelerate", "starterArgs": ["--main_process_port='$(id)'"]},
    ],
)
def test_own_names_and_options_have_a_safe_form(own: dict[str, Any]) -> None:
    with pytest.raises(ChartgenError):
        made(**own)


def test_nothing_is_said_of_a_model_that_nobody_described() -> None:
    layers = Values(values(nodes=1, args=["--batch=$(globalBatch)"]))
    facts, _ = facts_of_release(lab(), layers)
    assert {"gpus", "machines", "gpu", "batch"} == set(facts)
    assert {found.rule for found in check(lab(), layers) if found.severity != "warning"} == {"memory-is-not-estimated"}
    plan = plan_release(lab(), layers, "my-run", "ml")
    assert (plan.parallelism, plan.batch, plan.gpus) == ({}, {}, 2)


def test_the_environment_of_a_pod_has_no_name_of_the_program() -> None:
    assert "PROGRAM_DIRECTORY" not in env(made())
    assert env(made(directory="/work"))["PROGRAM_DIRECTORY"] == "/work"
