"""Launcher nemo-rl: portable values become the YAML that NeMo RL merges over its own recipes.

With `CHARTGEN_UPSTREAM`, a folder of git directories, the own loader of each release reads it, over its own recipes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from rendered import Objects, chart, one, rendered

from chartgen.checks import check
from chartgen.errors import ChartgenError
from chartgen.helm.values import load_values
from chartgen.helm.yaml import load, require_map

UPSTREAM = Path(os.environ.get("CHARTGEN_UPSTREAM", "/nowhere")) / "NVIDIA-NeMo+RL" / "repo"
OWN = "launchers.nemo-rl"
SFT = f"{OWN}.program=/opt/nemo-rl/examples/run_sft.py"
MEGATRON = f"{OWN}.backend=megatron"
SAVES = "checkpoint.enabled=true,checkpoint.interval=7,storage.outputs.from=pvc://results,storage.data.from=pvc://data"
ALL = (
    SAVES,
    "nodes=4,network.interface=infiniband,parallelism.tensor=4,parallelism.context=2,parallelism.sequence=true",
    "batch.micro=2,batch.global=64,sequenceLength=4096,recompute=full,steps=20",
    "optimizer.learningRate=2e-6,optimizer.weightDecay=0.2,optimizer.clipGradient=0.5",
    "evaluation.batches=2,evaluation.interval=5,tokenizer.kind=huggingface,tokenizer.path=/data/words",
    "wandb.project=rl,wandb.entity=us,mlflow.experiment=rl,mlflow.uri=http://mlflow:5000",
    f"{OWN}.model=/data/llama",
)
OLD = "nvcr.io/nvidia/nemo-rl:v0.5.0"
RELEASES = ("v0.5.0", "v0.6.0", "v0.7.0")


def run(*sets: str) -> Objects:
    return rendered(*sets, files=(), workload="rayjob", name="onprem-p8000")


def settings(*sets: str) -> dict[str, Any]:
    found = one("ConfigMap", run(*sets))["data"]["nemo-rl.yaml"]
    return require_map(load(found, "nemo-rl.yaml"), "settings")


def container(found: Objects) -> dict[str, Any]:
    (only,) = one("RayJob", found)["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"]
    return dict(only)


def test_portable_values_reach_their_sections_with_dtensor() -> None:
    found = settings(*ALL, f"{OWN}.prompts=32,{OWN}.generations=16")
    assert found["defaults"] == "/opt/nemo-rl/examples/configs/grpo_math_1B.yaml"
    assert found["cluster"] == {"num_nodes": 4, "gpus_per_node": 8}
    assert found["policy"] == {
        "model_name": "/data/llama",
        "tokenizer": {"name": "/data/words"},
        "precision": "bfloat16",
        "train_global_batch_size": 64,
        "train_micro_batch_size": 2,
        "max_total_sequence_length": 4096,
        "max_grad_norm": 0.5,
        "megatron_cfg": {"enabled": False},
        "dtensor_cfg": {
            "enabled": True,
            "tensor_parallel_size": 4,
            "context_parallel_size": 2,
            "sequence_parallel": True,
            "activation_checkpointing": True,
        },
        "optimizer": {"kwargs": {"lr": 2e-6, "weight_decay": 0.2}},
    }
    assert found["grpo"] == {
        "max_num_steps": 20,
        "max_num_epochs": 20,
        "num_prompts_per_step": 32,
        "num_generations_per_prompt": 16,
        "val_period": 5,
        "val_batch_size": 64,
        "max_val_samples": 128,
    }
    directory = "/outputs/ml/my-run"
    saved = {"enabled": True, "checkpoint_dir": f"{directory}/checkpoints", "save_period": 7}
    assert found["checkpointing"] == saved
    assert settings(*ALL, "checkpoint.keep=3")["checkpointing"] == {**saved, "keep_top_k": 3}
    name = found["logger"]["wandb"]["name"]
    assert found["logger"] == {
        "log_dir": f"{directory}/{name.rpartition('-')[2]}",
        "tensorboard_enabled": True,
        "wandb_enabled": True,
        "wandb": {"project": "rl", "name": name, "entity": "us"},
        "mlflow_enabled": True,
        "mlflow": {"experiment_name": "rl", "run_name": name, "tracking_uri": "http://mlflow:5000"},
    }


def test_megatron_core_has_its_own_section() -> None:
    found = settings(*ALL, MEGATRON, "parallelism.pipeline=2,parallelism.distributedOptimizer=false")
    assert found["defaults"].endswith("/grpo_math_1B_megatron.yaml")
    assert found["policy"]["dtensor_cfg"] == {"enabled": False}
    assert found["policy"]["megatron_cfg"] == {
        "enabled": True,
        "tensor_model_parallel_size": 4,
        "pipeline_model_parallel_size": 2,
        "context_parallel_size": 2,
        "expert_model_parallel_size": 1,
        "expert_tensor_parallel_size": 4,
        "sequence_parallel": True,
        "activation_checkpointing": True,
        "optimizer": {"use_distributed_optimizer": False, "lr": 2e-6, "weight_decay": 0.2},
    }
    assert "optimizer" not in found["policy"]
    env = {each["name"]: each["value"] for each in container(run(*ALL, MEGATRON))["env"]}
    assert env["NRL_MEGATRON_CHECKPOINT_DIR"] == "/outputs/ml/my-run/converted", "all machines read it"


def test_sft_has_its_own_program_recipe_and_section() -> None:
    found = settings(*ALL, SFT)
    assert found["defaults"] == "/opt/nemo-rl/examples/configs/sft.yaml"
    assert found["sft"] == {"max_num_steps": 20, "max_num_epochs": 20, "val_period": 5, "val_batches": 2}
    assert "grpo" not in found
    assert container(run(SFT))["args"] == [
        "/opt/nemo-rl/examples/run_sft.py",
        "--config",
        "/etc/chartgen/nemo-rl.yaml",
    ]
    own = settings(SFT, f"{OWN}.recipe=/data/recipes/own.yaml")
    assert own["defaults"] == "/data/recipes/own.yaml"


def test_without_evaluations_steps_or_checkpoints() -> None:
    found = settings("steps=0")
    assert found["grpo"] == {"val_period": 0, "val_at_start": False, "val_at_end": False}
    assert found["checkpointing"]["metric_name"] is None
    assert found["checkpointing"]["enabled"] is False
    assert found["logger"]["wandb_enabled"] is False, "the recipe of SFT turns it on"


def test_options_of_the_user_win() -> None:
    found = settings(f"{OWN}.config.grpo.async_grpo.enabled=true", f"{OWN}.config.policy.generation.vllm_cfg.x=2")
    assert found["grpo"]["async_grpo"] == {"enabled": True}
    assert found["policy"]["generation"] == {"vllm_cfg": {"x": 2}}
    assert found["grpo"]["max_num_steps"] == 10


@pytest.mark.parametrize(("age", "left"), [(0, "00:01:50:00"), (900, "00:01:35:00"), (99999, "00:00:00:00")])
def test_the_last_save_begins_before_the_deadline(age: int, left: str, tmp_path: Path) -> None:
    script = one("ConfigMap", run(SAVES, "run.deadlineSeconds=7200"))["data"]["driver.sh"]
    program = tmp_path / "examples" / "run_grpo.py"
    program.parent.mkdir()
    program.write_text("import sys\nprint(sys.argv[1:])\n")
    (tmp_path / "arguments").write_text(f"{program}\0")
    now = int(subprocess.run(["date", "+%s"], capture_output=True, text=True, check=True).stdout)
    text = script.replace("/run/chartgen", str(tmp_path)).replace("/etc/chartgen", str(tmp_path))
    (tmp_path / "driver.sh").write_text(text.replace("$(date +%s)", str(now)))
    os.utime(tmp_path / "driver.sh", (now - age, now - age))
    folders = {name: str(tmp_path / name) for name in ("RUN_DIRECTORY", "CHECKPOINT_DIRECTORY")}
    argv = ["bash", str(tmp_path / "driver.sh")]
    done = subprocess.run(argv, env={**os.environ, **folders}, capture_output=True, text=True, check=True)
    # the quotes are Hydra's, whose numbers may have colons
    assert done.stdout == f"""["++checkpointing.checkpoint_must_save_by='{left}'"]\n"""


def test_a_run_without_deadline_or_checkpoints_saves_as_ever() -> None:
    for sets in ((SAVES,), ("run.deadlineSeconds=7200",)):
        assert "must_save_by" not in one("ConfigMap", run(*sets))["data"]["driver.sh"]


@pytest.mark.parametrize(
    ("sets", "rule", "key"),
    [
        (("data.name=web",), "settings-of-the-launcher", "data.name"),
        (("tokenizer.kind=gpt2,tokenizer.path=/data/g",), "data-of-nemo-rl", "tokenizer.kind"),
        (("checkpoint.from=/data/other",), "model-of-nemo-rl", "checkpoint.from"),
        (("parallelism.pipeline=2",), "layout-of-nemo-rl", "parallelism.pipeline"),
        (("parallelism.distributedOptimizer=false",), "layout-of-nemo-rl", "parallelism.distributedOptimizer"),
        (
            (MEGATRON, "parallelism.pipeline=2,parallelism.virtualPipeline=2"),
            "settings-of-the-launcher",
            "virtualPipeline",
        ),
        (("batch.global=24", f"{OWN}.prompts=32,{OWN}.generations=16"), "samples-of-grpo", "batch.global"),
        (("recompute=selective",), "settings-of-nemo-rl", "recompute"),
        (("optimizer.warmupSteps=5",), "settings-of-the-launcher", "optimizer.warmupSteps"),
        (("optimizer.decay=cosine",), "settings-of-the-launcher", "optimizer.decay"),
        (("precision=fp8",), "precision-of-the-launcher", "precision"),
        ((SAVES, "run.deadlineSeconds=600"), "time-to-save", "saveSeconds"),
        ((f"{OWN}.config.policy.model_name=x",), "options-are-set-once", "config"),
        ((MEGATRON, f"{OWN}.image={OLD}"), "recipes-of-nemo-rl", "backend"),
    ],
)
def test_what_would_not_reach_it_is_refused(sets: tuple[str, ...], rule: str, key: str) -> None:
    found = check(chart("rayjob", "onprem-p8000"), load_values(set_values=sets))
    assert rule in {each.rule for each in found if each.severity == "error"}, found
    with pytest.raises(ChartgenError, match=key):
        run(*sets)


def test_no_grace_period_is_promised_to_a_program_that_ends_at_once() -> None:
    sets = (SAVES, "run.gracePeriodSeconds=0", "model.layers=96", "model.hiddenSize=12288", "model.attentionHeads=96")
    found = check(chart("rayjob", "onprem-p8000"), load_values(set_values=sets))
    assert "grace-for-a-checkpoint" not in {each.rule for each in found}


def test_a_program_of_another_algorithm_is_refused() -> None:
    with pytest.raises(ChartgenError, match="program"):
        run(f"{OWN}.program=/opt/nemo-rl/examples/run_dpo.py")


def leaves(tree: Any, prefix: str = "") -> dict[str, Any]:
    """Values of a tree by their paths; a branch is among them, without its value."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        inner = isinstance(value, dict)
        found[prefix + key] = None if inner else value
        found |= leaves(value, f"{prefix}{key}.") if inner else {}
    return found


@pytest.fixture(scope="module", params=RELEASES)
def genuine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Any]:
    """A release, its recipes, and its own module that reads them."""
    folder = tmp_path_factory.mktemp("nemo-rl")
    argv = ["git", "-C", str(UPSTREAM), "archive", request.param, "examples", "nemo_rl/utils/config.py"]
    packed = subprocess.run(argv, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)
    spec = importlib.util.spec_from_file_location("nemo_rl_config", folder / "nemo_rl" / "utils" / "config.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return request.param, folder, module


@pytest.mark.skipif(not UPSTREAM.is_dir(), reason="CHARTGEN_UPSTREAM has no NVIDIA-NeMo+RL")
@pytest.mark.parametrize("sets", [(), (SFT,), (MEGATRON,), (SFT, MEGATRON)], ids=["grpo", "sft", "grpo-m", "sft-m"])
def test_each_release_reads_our_settings_over_its_recipes(
    genuine: tuple[str, Path, Any], sets: tuple[str, ...], tmp_path: Path
) -> None:
    release, folder, module = genuine
    ours = settings(*ALL, *sets, *(() if SFT in sets else (f"{OWN}.prompts=32,{OWN}.generations=16",)))
    base = folder / ours["defaults"].removeprefix("/opt/nemo-rl/")
    known = set(leaves(OmegaConf.to_container(module.load_config(base))))
    (tmp_path / "ours.yaml").write_text(json.dumps({**ours, "defaults": str(base)}))
    del ours["defaults"]
    if hasattr(module, "register_omegaconf_resolvers"):
        module.register_omegaconf_resolvers()
    else:  # up to 0.6 each program registers its own
        OmegaConf.register_new_resolver("mul", lambda a, b: a * b, replace=True)
        OmegaConf.register_new_resolver("max", max, replace=True)
    if release == "v0.5.0" and MEGATRON in sets:  # rule recipes-of-nemo-rl
        with pytest.raises(FileNotFoundError):
            module.load_config(tmp_path / "ours.yaml")
        return
    override = "++checkpointing.checkpoint_must_save_by='00:01:50:00'"  # as driver.sh passes it
    read = OmegaConf.to_container(
        module.parse_hydra_overrides(module.load_config(tmp_path / "ours.yaml"), [override]), resolve=True
    )
    ours["checkpointing"]["checkpoint_must_save_by"] = "00:01:50:00"
    assert {path: value for path, value in leaves(ours).items() if leaves(read).get(path) != value} == {}
    # W&B's and MLflow's own arguments, which NeMo RL passes on as they are
    assert set(leaves(ours)) - {"logger.wandb.entity", "logger.mlflow.tracking_uri"} - known == set()
